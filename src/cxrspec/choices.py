"""Own the named choices that a definition makes and a metric carries out, each list once. Nothing is computed here."""

from __future__ import annotations

from typing import Final, Literal, get_args

Policy = Literal["U-Zeros", "U-Ones", "U-Ignore", "U-SelfTrained", "U-MultiClass"]
"""What is made of a training label of -1 (uncertain): Irvin et al. 2019 (CheXpert), section 3.1."""
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)

Similarity = Literal["cosine_difference", "dot_difference"]
"""How embeddings of images and prompts become scores."""
SIMILARITIES: Final[tuple[Similarity, ...]] = get_args(Similarity)
