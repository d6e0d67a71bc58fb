"""Fixtures of the world-action model: an instruction embedding that needs no weights."""


import pytest


@pytest.fixture
def no_weights(monkeypatch):
    """Texts become vectors without the sentence embedding's weights."""
    pytest.importorskip("torch")
    from tiny_wam import fake_embed

    for module in ("data", "policy", "training"):
        monkeypatch.setattr(f"policies.wam.{module}.embed", fake_embed)
