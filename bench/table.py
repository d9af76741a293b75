"""What was measured: rows with a goal, printed as a table and kept as JSON."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """A bound for a row's ratio (or, for a row without a peer, for its value)."""

    relation: str
    bound: float

    def verdict(self, value):
        """`met`, or by how much the bound was missed."""
        over = value / self.bound - 1 if self.relation == "<=" else 1 - value / self.bound
        return "met" if over <= 0 else f"missed by {over:.0%}"

    def __str__(self):
        return f"{self.relation} {self.bound:g}"


@dataclass(frozen=True)
class Row:
    """One comparison. `rounds` keeps every single measurement behind it."""

    what: str
    unit: str
    feedline: float
    peer_name: str = ""
    peer: float | None = None
    ratio: float | None = None
    goal: Goal | None = None
    note: str = ""
    rounds: dict = field(default_factory=dict)

    @property
    def verdict(self):
        """The goal's verdict on the ratio, or on the value where there is no peer."""
        if self.goal is None:
            return "-"
        return self.goal.verdict(self.feedline if self.ratio is None else self.ratio)

    def cells(self):
        """The row as text."""
        peer = "" if self.peer is None else f"{self.peer:.4g} ({self.peer_name})"
        return [
            self.what,
            self.unit,
            f"{self.feedline:.4g}",
            peer,
            "" if self.ratio is None else f"{self.ratio:.3g}",
            "" if self.goal is None else str(self.goal),
            self.verdict,
        ]

    def as_json(self):
        """The row for the results file."""
        return {
            "what": self.what, "unit": self.unit, "feedline": self.feedline,
            "peer_name": self.peer_name, "peer": self.peer, "ratio": self.ratio,
            "goal": None if self.goal is None else str(self.goal), "verdict": self.verdict,
            "note": self.note, "rounds": self.rounds,
        }


def render(rows):
    """The rows as lines of a table, notes below."""
    head = ["measured", "unit", "Feedline", "peer", "ratio", "goal", "verdict"]
    cells = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()
             for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return [*lines, *(f"  {row.what}: {row.note}" for row in rows if row.note)]
