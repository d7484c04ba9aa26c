"""A run on disk: run.json, and a file for each finished round of each candidate.

Files appear complete or not at all, so a run that was interrupted is a short run.
"""

import dataclasses
import glob
import json
import os

FORMAT = 1


def save(path, content):
    """Written aside and renamed: a reader sees the old file or the new one."""
    aside = f"{path}.part"
    with open(aside, "w", encoding="utf-8") as f:
        json.dump(content, f, indent=1)
        f.write("\n")
        f.flush()
        os.fsync(f.fileno())
    os.rename(aside, path)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


@dataclasses.dataclass
class Round:
    """One measurement of one candidate.  values is the scenario's; error is why
    there are none."""
    scenario: str
    candidate: str
    number: int
    values: dict = None
    error: str = None
    commands: list = dataclasses.field(default_factory=list)
    conf: str = None
    samples: dict = dataclasses.field(default_factory=dict)

    def join(self, part):
        """What another part of this round has found."""
        self.values = {**(self.values or {}), **(part.values or {})} or None
        self.error = "; ".join(filter(None, (self.error, part.error))) or None
        self.commands += [argv for argv in part.commands if argv not in self.commands]
        self.conf = part.conf or self.conf
        self.samples.update(part.samples)

    def file(self):
        return f"{self.scenario}-{self.number:03}-{self.candidate}.json"


class Run:
    """The directory of a run.  about: host, command, settings, titles, left_out."""

    def __init__(self, path):
        self.path, self.about, self.rounds = path, {}, []

    @staticmethod
    def check(path):
        """RuntimeError: there is something already."""
        if os.path.exists(f"{path}/run.json"):
            raise RuntimeError(f"{path} holds a run already: take another --out, or "
                               "remove it")
        if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
            raise RuntimeError(f"{path} is not an empty directory: take another --out")

    @classmethod
    def create(cls, path, about):
        run = cls(path)
        cls.check(path)
        os.makedirs(f"{path}/rounds", exist_ok=True)
        run.describe(about)
        return run

    @classmethod
    def open(cls, path):
        run = cls(path)
        try:
            run.about = load(f"{path}/run.json")
            run.rounds = [Round(**load(name))
                          for name in sorted(glob.glob(f"{path}/rounds/*.json"))]
        except FileNotFoundError:
            raise RuntimeError(f"{path} is not the directory of a run: it has no "
                               "run.json") from None
        except (ValueError, TypeError) as why:
            raise RuntimeError(f"{path}: not written by this laboratory: {why}") from None
        if run.about.get("format") != FORMAT:
            raise RuntimeError(f"{path}: written by another version of the laboratory")
        return run

    def describe(self, about):
        self.about.update(about, format=FORMAT)
        save(f"{self.path}/run.json", self.about)

    def add(self, finished):
        """A round, or a part of one: then it is joined to what there is of it."""
        for one in self.rounds:
            if one.file() == finished.file():
                one.join(finished)
                break
        else:
            self.rounds.append(one := finished)
        save(f"{self.path}/rounds/{one.file()}", dataclasses.asdict(one))

    def of(self, scenario):
        return [r for r in self.rounds if r.scenario == scenario]
