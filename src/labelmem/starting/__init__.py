"""What recorded users teach the library's default form: better beginnings for new streams."""

from labelmem.starting.choosing import chosen, surpasses
from labelmem.starting.lessons import GUARD, HELD_OUT, Lessons, lessons
from labelmem.starting.outcome import Figures, Outcome
from labelmem.starting.replaying import Replayed, measured, replay_users
from labelmem.starting.starts import Judged, Judgement, Start, judge_starts, saved_start, with_start

__all__ = [
    "GUARD",
    "HELD_OUT",
    "Figures",
    "Judged",
    "Judgement",
    "Lessons",
    "Outcome",
    "Replayed",
    "Start",
    "chosen",
    "judge_starts",
    "lessons",
    "measured",
    "replay_users",
    "saved_start",
    "surpasses",
    "with_start",
]
