"""The fixture of all attacks."""

from pathlib import Path

import pytest

from support.hostile import Attack


@pytest.fixture
def attack(tmp_path: Path) -> Attack:
    """Attacks of one test."""
    return Attack(tmp_path.resolve())
