"""What `everlong demo` does."""

import json

from everlong.graph.cli_open import opened_agent
from everlong.graph.demo import Example
from everlong.graph.demo_examples import examples
from everlong.graph.demo_view import show, show_verdict
from everlong.graph.terminal import Waiting, out


async def demo(*, as_json: bool, dsn: str | None) -> int:
    """Run the examples and show each as it is done; 1 where a number does not come out."""
    done: list[Example] = []
    async with opened_agent(dsn, mcp={}) as agent:
        spinner = Waiting()
        spinner.begin("Running the examples")
        async for example in examples(agent):
            spinner.end()
            done.append(example)
            if not as_json:
                show(example)
            spinner.begin("Running the next example")
        spinner.end()
    if as_json:
        text = json.dumps([one.as_data() for one in done], ensure_ascii=False, indent=2)
        out.file.write(f"{text}\n")
    else:
        show_verdict(done)
    return 0 if all(one.ok for one in done) else 1
