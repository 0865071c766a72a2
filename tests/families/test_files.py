"""The files of this folder are those of the table, small, and pass the check that every file passes."""

from __future__ import annotations

import hashlib

import pytest

from app.catalog.gguf.gguf_file import read_header
from scripts.families import dense, experts, hybrids, windows
from tests.families.fixtures import FOLDER, Family, families

MOST_BYTES = 12_000_000


@pytest.mark.parametrize("family", families().values(), ids=families())
def test_file_is_the_one_of_the_table(family: Family) -> None:
    data = family.path.read_bytes()
    assert len(data) == family.n_bytes
    assert hashlib.sha256(data).hexdigest() == family.sha256
    header = read_header(family.path)
    assert header.text("general.architecture") == family.architecture
    blocks = header.integer(f"{family.architecture}.block_count", 1, 100, 0)
    assert blocks == family.layers + family.mtp_layers


def test_nothing_else_lies_here_and_all_of_it_is_small() -> None:
    files = {path.stem: path.stat().st_size for path in FOLDER.glob("*.gguf")}
    assert files.keys() == families().keys()
    assert sum(files.values()) <= MOST_BYTES


def test_each_recipe_has_its_file() -> None:
    recipes = (*dense.RECIPES, *windows.RECIPES, *experts.RECIPES, *hybrids.RECIPES)
    made = {recipe.name: (recipe.model, recipe.seed, recipe.note) for recipe in recipes}
    table = families().values()
    assert {each.name: (each.transformers, each.seed, each.note) for each in table} == made
