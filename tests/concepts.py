"""An embedder that knows some concepts: texts about the same ones are near, in any language."""

from hashlib import sha256

from langchain_core.embeddings import Embeddings

DIMS = 64
CONCEPTS = {
    "harbour": ("port", "harbour", "quay", "港"),
    "vehicle": ("car", "automobile", "lorry", "汽车"),
    "physician": ("doctor", "physician", "gp", "医生"),
    "beverage": ("tea", "coffee", "drink", "茶"),
}


class Concepts(Embeddings):
    """Deterministic, in no need of a network; `fail` makes it fail, `asked` is what it embedded."""

    def __init__(self) -> None:
        self.fail: Exception | None = None
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.fail is not None:
            raise self.fail
        self.asked += texts
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def vector_of(text: str) -> list[float]:
    vector = [0.0] * DIMS
    for concept, words in CONCEPTS.items():
        if any(word in text.lower() for word in words):
            vector[_place(concept)] += 10.0
    for word in text.lower().split():
        vector[_place(word)] += 1.0
    return vector


def _place(word: str) -> int:
    return sha256(word.encode()).digest()[0] % DIMS
