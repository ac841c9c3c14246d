"""Which answers may stand for a history, and which of their words."""

import pytest
from langchain_core.messages import AIMessage

from everlong.nodes.acceptance import objection, summary_text

LONG = "The user ordered PX-4471. " * 40


def ended(**metadata):
    return AIMessage("half a summary", response_metadata=metadata)


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage("fine"),
        AIMessage("The user is sorry that PX-4471 is late; he cannot wait."),
        AIMessage("Errors were found in three invoices."),
        AIMessage("Error handling was discussed; retries stay at 3."),
        AIMessage("503 invoices were checked, 404 of them by hand."),
        AIMessage("Unfortunately for the user, the port cannot take PX-4471 before May."),
        AIMessage("用户对延误表示抱歉，订单 PX-4471 无法在五月前发出。"),
        AIMessage("系统错误已修复，订单 PX-4471 正常。"),
        AIMessage("I'm sorry, I can't help with that, said the clerk. " + LONG),
        AIMessage("Error: 12 was the first line of the log. " + LONG),
        ended(finish_reason="stop"),
        ended(stop_reason="end_turn"),
        ended(status="completed", incomplete_details=None),
        AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "fine"}]),
    ],
    ids=lambda answer: answer.text[:40],
)
def test_a_summary_is_taken(answer):
    assert objection(answer) == ""


@pytest.mark.parametrize(
    "content",
    [
        "",
        " \n",
        "<summary></summary>",
        "<summary>\n </summary>",
        "Here it is: <summary></summary>",
        "<think>I should sum up.</think>",
        "<think>I should sum up. And then",
        [],
        [{"type": "thinking", "thinking": "I should sum up...", "signature": "sig"}],
        [{"type": "text", "text": " "}],
        [{"type": "reasoning", "summary": []}, {"type": "text", "text": "<summary></summary>"}],
    ],
)
def test_nothing_said_is_empty(content):
    assert objection(AIMessage(content)) == "empty"


@pytest.mark.parametrize(
    "metadata",
    [
        {"finish_reason": "length"},  # OpenAI, DeepSeek, Qwen, Mistral, Groq
        {"finish_reason": "MAX_TOKENS"},  # Gemini, Cohere
        {"finish_reason": "FinishReason.MAX_TOKENS"},
        {"finish_reason": "model_length"},  # Mistral
        {"finish_reason": "insufficient_system_resource"},  # DeepSeek
        {"stop_reason": "max_tokens"},  # Anthropic
        {"stop_reason": "model_context_window_exceeded"},  # Anthropic
        {"stopReason": "max_tokens"},  # Bedrock
        {"done_reason": "length"},  # Ollama
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},  # OpenAI
    ],
    ids=str,
)
def test_what_the_output_limit_cut_off_is_refused(metadata):
    assert objection(ended(**metadata)) == "cut off by the output limit"


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}),
        AIMessage([{"type": "refusal", "refusal": "No."}]),
        ended(finish_reason="content_filter"),
        ended(finish_reason="SAFETY"),
        ended(stop_reason="refusal"),
        ended(stopReason="guardrail_intervened"),
        ended(status="incomplete", incomplete_details={"reason": "content_filter"}),
        AIMessage("I'm sorry, I can't help with that."),
        AIMessage("I’m sorry, but I can’t assist with that request."),
        AIMessage("I am very sorry, but as a model I am not able to do this."),
        AIMessage("Sorry, I cannot continue this conversation."),
        AIMessage("I apologize, but I won't summarize this."),
        AIMessage("I can't help with that."),
        AIMessage("I cannot provide a summary of this conversation."),
        AIMessage("I'm unable to process this content."),
        AIMessage("As an AI language model, I cannot discuss this."),
        AIMessage("Unfortunately, I am unable to comply."),
        AIMessage("<summary>I'm sorry, I can't help with that.</summary>"),
        AIMessage("抱歉，我无法协助处理该请求。"),
        AIMessage("很抱歉，这个内容我不能总结。"),
        AIMessage("对不起，我不能这样做。"),
        AIMessage("我无法提供摘要。"),
        AIMessage("作为一个AI语言模型，我无法回答。"),
    ],
    ids=lambda answer: answer.text[:40],
)
def test_a_refusal_is_refused(answer):
    assert objection(answer) == "a refusal"


@pytest.mark.parametrize(
    "text",
    [
        "Error: overloaded",
        "error code: 429 - rate limited",
        "Error 500",
        "[Error] : no answer",
        "API error: 529 overloaded",
        "openai.RateLimitError: 429",
        "RateLimitError: too fast",
        "Traceback (most recent call last):\n  File",
        "(Summarization failed: timeout)",
        "Summarization failed",
        "Failed to generate summary",
        "An error occurred while processing your request.",
        "An internal error has occurred",
        "429 Too Many Requests",
        "HTTP/1.1 503 Service Unavailable",
        "Internal Server Error",
        "upstream connect error or disconnect/reset before headers",
        "Request timed out.",
        "错误：请求过于频繁",
        "请求失败：超时",
        "<html><body>502 Bad Gateway</body></html>" + "<!-- padding -->" * 60,
        '{"error": {"message": "no credit"}}',
    ],
)
def test_an_error_text_is_refused(text):
    assert objection(AIMessage(text)) == "an error text"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<summary>They spoke.</summary>", "They spoke."),
        ("<analysis>long</analysis>\n<summary>\nThey spoke.\n</summary>", "They spoke."),
        ("<summary>They spoke.", "They spoke."),
        ("They spoke.</summary>", "They spoke."),
        ("<think>let me see</think>\n\nThey spoke.", "They spoke."),
        (
            [
                {"type": "thinking", "thinking": "let me see", "signature": "sig"},
                {"type": "text", "text": "They spoke."},
            ],
            "They spoke.",
        ),
    ],
)
def test_only_the_text_of_a_summary_is_kept(content, text):
    assert summary_text(AIMessage(content)) == text
