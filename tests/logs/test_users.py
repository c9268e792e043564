from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from logs.habits import events, lines_of, write_log

from labelmem.errors import CorruptFileError, InputError
from labelmem.logs.adapt_command import adapt_log
from labelmem.logs.states import FILE, States
from labelmem.logs.users import explain_user, forget_user, inspect_user, predict_user

USER = "person-0003"


@pytest.fixture
def lived(folder: Path, log_file: Path) -> Path:
    """A model folder whose users have been through the log."""
    adapt_log(folder, log_file, None, show=False)
    return folder


def test_asking_foretells_what_adapting_predicts(folder: Path, tmp_path: Path) -> None:
    rows = events()
    last = max(i for i, row in enumerate(rows) if row[0] == USER)
    adapt_log(folder, write_log(tmp_path / "a.csv", rows[:last]), None, show=False)
    told = predict_user(folder, USER)
    adapt_log(folder, write_log(tmp_path / "b.csv", rows[last:]), tmp_path / "b.jsonl", show=False)
    line = next(line for line in lines_of(tmp_path / "b.jsonl") if line["user"] == USER)
    assert [row["item"] for row in told["top"]] == [item for item, _ in line["top"]]
    assert [row["p"] for row in told["top"]] == pytest.approx([p for _, p in line["top"]], abs=2e-5)


def test_asking_changes_nothing(lived: Path) -> None:
    before = (lived / FILE).read_bytes()
    assert predict_user(lived, USER) == predict_user(lived, USER)
    explain_user(lived, USER)
    inspect_user(lived, USER)
    assert (lived / FILE).read_bytes() == before


def test_somebody_new_gets_what_the_model_says(folder: Path) -> None:
    told = predict_user(folder, "nobody", top=3)
    assert not told["known"] and len(told["top"]) == 3


def test_the_memory_holds_what_the_user_had(lived: Path) -> None:
    told = inspect_user(lived, USER)
    places = [place for user, place, _ in events() if user == USER]
    assert {row["item"]: row["events"] for row in told["memory"]} == Counter(places)
    assert told["memory"][0]["item"] == places[-1] and told["memory"][0]["age"] == 1
    assert told["events"] == len(places)


def test_an_explanation_adds_up(lived: Path) -> None:
    told = explain_user(lived, USER)
    best = predict_user(lived, USER)["top"][0]
    assert (told["item"], told["p"]) == (best["item"], pytest.approx(best["p"]))
    assert told["model_share"] + told["memory_share"] == pytest.approx(1)
    other = explain_user(lived, USER, "home of 3")
    assert other["item"] == "home of 3" and other["memory_share"] == pytest.approx(1)
    with pytest.raises(InputError, match="knows the item"):
        explain_user(lived, USER, "nowhere")


def test_nothing_of_a_forgotten_user_is_left(lived: Path) -> None:
    with States(lived) as states:
        kept = states.get([USER])[USER]
        others = states.users() - 1
    data = (lived / FILE).read_bytes()
    pieces = [kept.state[i : i + 32] for i in range(0, len(kept.state) - 32, 32)]
    unique = [piece for piece in pieces if data.count(piece) == 1]
    assert len(unique) > 20  # others have the traces of common items too
    probes = [USER.encode(), b'"home of 3"', *unique]
    told = forget_user(lived, USER)
    assert told["found"] and told["verified"] and told["removed"]["events"] == kept.observed
    for path in lived.rglob("*"):
        assert not any(probe in path.read_bytes() for probe in probes), path
    assert not predict_user(lived, USER)["known"]
    with States(lived) as states:
        assert states.users() == others
    with pytest.raises(InputError, match="nothing is kept"):
        inspect_user(lived, USER)


def test_a_name_inside_another_is_no_trace(folder: Path, tmp_path: Path) -> None:
    rows = [("person-1", "place 1", 1), ("person-1", "place 2", 2), ("person-10", "place 1", 3)]
    adapt_log(folder, write_log(tmp_path / "few.csv", rows), None, show=False)
    told = forget_user(folder, "person-1")
    assert told["found"] and told["verified"] and told["probes"] > 0
    assert predict_user(folder, "person-10")["known"]


def test_forgetting_names_files_elsewhere(folder: Path, log_file: Path, tmp_path: Path) -> None:
    adapt_log(folder, log_file, tmp_path / "out.jsonl", show=False)
    assert forget_user(folder, USER)["outputs"] == [str(tmp_path / "out.jsonl")]


def test_forgetting_nobody_is_no_error(folder: Path) -> None:
    told = forget_user(folder, "nobody at all")
    assert not told["found"] and told["verified"]


def test_an_id_that_is_a_word_of_the_card_is_no_trace(lived: Path) -> None:
    assert "nobody" in (lived / "card.md").read_text(encoding="utf-8")
    assert forget_user(lived, "nobody")["verified"]
    (lived / "left.txt").write_text("notes on nobody", encoding="utf-8")
    assert forget_user(lived, "nobody")["left_in"] == ["left.txt"]


def test_what_the_model_has_as_well_is_no_trace(lived: Path) -> None:
    with States(lived) as states:
        state = states.get([USER])[USER].state
    weights = lived / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + state[: len(state) // 2])
    (lived / "copy.bin").write_bytes(state)
    told = forget_user(lived, USER)
    assert told["probes"] > 0 and told["left_in"] == ["copy.bin"]


def test_a_damaged_state_is_refused(lived: Path) -> None:
    data = bytearray((lived / FILE).read_bytes())
    with States(lived) as states:
        place = data.find(states.get([USER])[USER].state[-64:])
    data[place] ^= 1
    (lived / FILE).write_bytes(data)
    with pytest.raises(CorruptFileError, match="checksum"):
        predict_user(lived, USER)


def test_a_file_that_is_no_database_is_refused(folder: Path) -> None:
    (folder / FILE).write_bytes(b"nonsense" * 100)
    with pytest.raises(CorruptFileError, match="damaged"):
        predict_user(folder, USER)
