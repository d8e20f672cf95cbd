"""The trial of one request class: which contender the next call runs, and when the class is decided.

A trial is a sequence of duels. The leader, at first the vendor's default library, and one challenger alternate in
blocks of consecutive calls; the first call of a block is not counted, since it depends on the call before it (caches,
threads that still spin). Every counted call of the challenger is divided by the leader's latest ones: a slow phase of
the machine falls on both. A duel ends when the median of these ratios differs from 1 by more than their scatter, or
after MOST_COUNTED of them. Ties go to the vendor. A scheme that leads after all duels is compared with the vendor once
more, when nothing is compiled any longer: of several contenders one leads by chance. What the challengers cost is
bounded: they run only while the seconds lost stay below REGRET_PART of the seconds spent in the class, plus
REGRET_SECONDS. More contenders are compiled only while all that was lost, compilation included, stays below MORE_PART.

All functions are pure: no clock, no randomness.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

BLOCK = 3
"""Consecutive calls of one contender; all but the first are counted."""

LEAST_COUNTED, MOST_COUNTED, LAST_COUNTED = 4, 32, 8
"""Counted calls of the challenger after which a duel may end, must end, and may end if the challenger lost before."""

RECENT = 2 * (BLOCK - 1)
"""Latest counted calls of the leader that a call of the challenger is divided by."""

REGRET_PART, REGRET_SECONDS = 0.015, 0.05
"""Bound of the net seconds that challengers may lose: a part of all seconds spent in the class, and a constant.

A vendor's library that challenges a scheme loses nothing to the vendor: it is not counted.
"""

MORE_PART = 0.025
"""Bound of the net seconds that challengers and compilation may lose, as a part, where the vendor's library leads.

On two cores, of which products use both, a second of another process's compilation costs a second of calls.
"""

VENDOR_PART = 0.985
"""Fraction of a vendor's median that a scheme must stay below; the vendor needs to come within its inverse.

Where a decided class is looked at again, also the fraction of the leading scheme's that another must stay below.
"""

SPREAD, LAST_SPREAD = 2.5, 0.5
"""Standard errors of the median ratio by which a duel is decided, and by which a scheme must be faster than a
vendor's library where the last counted call ends it: else the tie goes to the vendor.

On simulated calls that scatter by 5%, one in a hundred three times as long, a scheme replaced the vendor in 6% of 150
classes with four schemes as fast as it, in none with three of 1.02 to 1.03; one of 0.95 won in 96%.
"""

LEAST_ERROR = 0.003
"""Least relative standard error of a median: few samples may agree by chance."""

SHORT, SHORT_COUNTED = 1e-3, 8
"""Calls of fewer seconds are compared once no contender is to come, and only after so many counted calls of each side.

What compiles and loads contenders beside such calls takes longer from some of them than the contenders differ.
"""

ABSURD, ABSURD_SECONDS = 4.0, 0.5
"""A challenger loses with a first call that takes so many times as long, if it lost so many seconds."""

HOPELESS, SLOW = 1.6, 1.12
"""Ratios at which a challenger loses early.

HOPELESS: after one counted call that lost ABSURD_SECONDS, or after two that are both beyond it. SLOW: the median of at
least two, all of them slower than the leader's latest ones.
"""

AGAIN, MOST_LOOKS = 800, 8
"""Calls after which a decided class is compared again: what was measured may be wrong, or the machine has changed.

They double with every comparison that confirms the leader, MOST_LOOKS times.
"""

DRIFT, DRIFTED = 1.3, 40
"""Ratio to the decided median, or its inverse, and number of consecutive calls beyond it, that start a comparison."""


@dataclass(frozen=True)
class Loss:
    """A finished duel: the loser, the winner, and the loser's median over the winner's, at least 1.

    What lost a tie to the vendor is stored as slow as it: by a smaller median it would be chosen where wisdom chooses.
    """

    loser: int
    winner: int
    ratio: float


@dataclass(frozen=True)
class Trial:
    """The state of one class. Contenders are numbered in the order of their trial, the vendor's libraries first.

    `vendors` is the number of the vendor's libraries, `contenders` that of all contenders so far; `open` states that
    more may come. `led` and `tried` are the counted seconds of the leader and of the challenger in this duel, `ratios`
    those of `tried` over RECENT of `led`. `last` is the contender of the latest call, `streak` the number of its
    consecutive calls. `spent`, `regret` and `compiled` are seconds: those of the calls, those that challengers lost,
    and those of a processor that compiled contenders beside the calls. `outstanding` counts calls of the challenger
    that were issued and not yet timed. `confirmed` is the scheme that was, or is, compared with the vendor once more.
    `median` is the decided leader's, `drifted` the number of the latest calls beyond DRIFT of it, `since` the calls
    since the decision, `looks` the number of comparisons since the leader last changed, that which made it leader
    included once it has ended.
    """

    vendors: int = 1
    contenders: int = 1
    open: bool = True
    leader: int = 0
    challenger: int | None = None
    led: tuple[float, ...] = ()
    tried: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    losses: tuple[Loss, ...] = ()
    failed: frozenset[int] = frozenset()
    last: int = 0
    streak: int = 0
    outstanding: int = 0
    spent: float = 0.0
    regret: float = 0.0
    compiled: float = 0.0
    confirmed: int | None = None
    median: float | None = None
    since: int = 0
    drifted: int = 0
    looks: int = 0

    @property
    def decided(self) -> bool:
        """Whether no contender is left to be tried, and none may come."""
        return not self.open and self.challenger is None

    @property
    def waits(self) -> bool:
        """Whether the challenger has lost so many seconds that for now only the leader runs, whose time is known."""
        return len(self.led) >= RECENT and self.last != self.challenger and not _affordable(self)

    def beaten(self) -> frozenset[int]:
        """Return the contenders that have lost a duel or failed."""
        return self.failed | {loss.loser for loss in self.losses}

    def seconds(self) -> dict[int, float]:
        """Return a median for each contender of a finished duel, in terms of the leader's latest one; {} if unknown."""
        known = {self.leader: self.median or (statistics.median(self.led) if self.led else 0.0)}
        if not known[self.leader]:
            return {}
        for loss in reversed(self.losses):
            if loss.winner in known and loss.loser not in known:
                known[loss.loser] = loss.ratio * known[loss.winner]
        return known


def changed(trial: Trial, **changes: Any) -> Trial:
    """Return a trial with other values of some fields.

    Every timed call makes two: `dataclasses.replace` takes seven times as long, which calls of 0.7 ms notice.
    """
    made = object.__new__(Trial)
    vars(made).update(vars(trial), **changes)
    return made


def begun(vendors: int, contenders: int | None = None, open: bool = True) -> Trial:
    """Return the trial of a class of which no call was timed; `open` as in `Trial`."""
    return _matched(Trial(vendors, contenders or vendors, open))


def admit(trial: Trial, contenders: int, complete: bool) -> Trial:
    """Return the trial with more contenders (in total), and, if `complete`, with no others to come."""
    if trial.open and complete and _is_short(trial.led):
        trial = changed(trial, led=())  # they were timed beside the loading of contenders
    return _matched(changed(trial, contenders=max(trial.contenders, contenders), open=trial.open and not complete))


def choose(trial: Trial) -> int:
    """Return the contender that the next call runs."""
    rival = trial.challenger
    if rival is None or not trial.led:  # without a time of the leader nothing bounds what the challenger loses
        return trial.leader
    if trial.last == rival:
        # A second call of a block is always made: without a counted one the block would have been for nothing.
        goes_on = trial.streak < BLOCK and (trial.streak == 1 or _affordable(trial))
    else:
        goes_on = (trial.streak >= BLOCK or trial.last != trial.leader) and _affordable(trial)
    return rival if goes_on and trial.outstanding < BLOCK else trial.leader


def issue(trial: Trial, contender: int) -> tuple[Trial, bool]:
    """Record that a call runs a contender; return also whether its time counts in the duel."""
    same = contender == trial.last
    streak = trial.streak + 1 if same else 1
    outstanding = trial.outstanding + (contender == trial.challenger)
    return changed(trial, last=contender, streak=streak, outstanding=outstanding), streak > 1


def observe(trial: Trial, contender: int, seconds: float, counted: bool, calls: int = 1) -> Trial:
    """Record the seconds of a call. Times that no clock can have measured are ignored.

    Where nothing is compared the call may stand for several `calls`, of which only it was timed.
    """
    rival = contender == trial.challenger
    if rival and trial.outstanding:
        trial = changed(trial, outstanding=trial.outstanding - 1)
    if not (math.isfinite(seconds) and seconds > 0):
        return trial
    trial = changed(trial, spent=trial.spent + seconds * (1 if rival else calls))
    if trial.decided:
        return _watched(trial, contender, seconds, calls)
    if rival:
        usual = statistics.median(trial.led[-RECENT:]) if trial.led else seconds
        if not _is_free(trial):
            trial = changed(trial, regret=trial.regret + seconds - usual)
        if seconds > ABSURD * usual and seconds - usual > ABSURD_SECONDS:
            return _ended(trial, False, seconds / usual)
    if counted and contender == trial.leader:
        trial = changed(trial, led=(*trial.led, seconds)[-2 * MOST_COUNTED :])
    elif counted and rival:
        ratio = seconds / usual
        trial = changed(trial, tried=(*trial.tried, seconds), ratios=(*trial.ratios, ratio) if trial.led else ())
    won = _challenger_wins(trial)
    return trial if won is None else _ended(trial, won, compared(trial) or 1.0)


def widen(trial: Trial) -> Trial:
    """Return a decided trial open for more contenders: losers stay beaten, the leader is timed anew."""
    return changed(trial, open=True, led=(), looks=0)


def affords_more(trial: Trial) -> bool:
    """Return whether more contenders may be compiled now, which takes about as long again as those before did.

    Where a scheme leads, what it gains pays for them.
    """
    lost = trial.regret + 2 * trial.compiled
    return trial.leader >= trial.vendors or lost <= MORE_PART * trial.spent + REGRET_SECONDS


def fail(trial: Trial, contender: int) -> Trial:
    """Record that a contender cannot run: it is never chosen again. The vendor's default library is not refused."""
    if contender == 0:
        return trial
    trial = changed(trial, failed=trial.failed | {contender})
    if contender == trial.leader:
        trial = changed(trial, leader=0, led=(), tried=(), ratios=(), median=None)
    if contender == trial.challenger:
        trial = changed(trial, challenger=None, tried=(), ratios=(), outstanding=0)
    return _matched(trial)


def reopen(trial: Trial) -> Trial:
    """Return a decided trial with contenders to be compared with the leader again.

    They are all of them where the leader's time has changed or nobody has looked yet (what wisdom says may be wrong),
    else the vendor's library and the scheme that came nearest: a comparison with eight takes hundreds of calls.
    """
    looks = 0 if trial.drifted >= DRIFTED else min(trial.looks + 1, MOST_LOOKS)
    losses: tuple[Loss, ...] = ()
    if looks > 1:
        latest = {loss.loser: loss for loss in trial.losses if loss.loser not in trial.failed | {trial.leader}}
        kinds = ([one for one in latest.values() if (one.loser < trial.vendors) == vendor] for vendor in (True, False))
        again = {min(kind, key=lambda loss: loss.ratio).loser for kind in kinds if kind}
        losses = tuple(loss for loss in trial.losses if loss.loser not in again)
    anew = changed(trial, losses=losses, led=(), confirmed=trial.leader, median=None, since=0, drifted=0, looks=looks)
    return _matched(anew)


def decided_by(vendors: int, seconds: tuple[float, ...]) -> Trial:
    """Return the trial that measured medians of all contenders decide; ties go to the vendor."""
    best = min(range(len(seconds)), key=seconds.__getitem__)
    vendor = min(range(vendors), key=seconds.__getitem__)
    leader = best if seconds[best] < VENDOR_PART * seconds[vendor] else vendor
    ranked = sorted(range(len(seconds)), key=seconds.__getitem__)
    losses = tuple(Loss(i, leader, seconds[i] / seconds[leader]) for i in ranked if i != leader)
    return Trial(vendors, len(seconds), False, leader, None, losses=losses, median=seconds[leader])


def compared(trial: Trial) -> float | None:
    """Return the median of the challenger's calls over the leader's; None while either has no counted call."""
    return statistics.median(trial.ratios) if trial.ratios else None


def _affordable(trial: Trial) -> bool:
    """Return whether the challenger's expected loss is within the budget."""
    if _is_free(trial):
        return True
    expected = 0.0
    if ratio := compared(trial):
        expected = max(0.0, (1 - 1 / ratio) * statistics.median(trial.tried))
    return trial.regret + expected <= REGRET_PART * trial.spent + REGRET_SECONDS


def _is_free(trial: Trial) -> bool:
    """Return whether the challenger is a vendor's library and the leader a scheme: nothing is lost to the vendor."""
    return trial.challenger is not None and trial.challenger < trial.vendors <= trial.leader


def _matched(trial: Trial) -> Trial:
    """Return the trial with a challenger, if one is left that has not lost."""
    if trial.challenger is not None:
        return trial
    if trial.open and _is_short(trial.led or (() if trial.median is None else (trial.median,))):
        return trial
    beaten = trial.beaten()
    left = [i for i in range(trial.contenders) if i != trial.leader and i not in beaten]
    if left:
        return _against(trial, left[0])
    if trial.open or trial.median is not None:
        return trial
    dethroned = [loss.loser for loss in trial.losses if loss.loser < trial.vendors <= loss.winner]
    if trial.leader >= trial.vendors and trial.confirmed != trial.leader and dethroned:
        return _against(changed(trial, confirmed=trial.leader), dethroned[-1])
    median = statistics.median(trial.led) if trial.led else None
    return changed(trial, median=median, since=0, drifted=0, looks=max(trial.looks, 1))


def _against(trial: Trial, challenger: int) -> Trial:
    """Return the trial with the duel of its leader and a challenger; of the leader's calls the latest stay."""
    led = trial.led[-RECENT:]
    return changed(trial, challenger=challenger, led=led, tried=(), ratios=(), outstanding=0, since=0, drifted=0)


def _ended(trial: Trial, won: bool, ratio: float) -> Trial:
    """Return the trial after a duel, whose challenger took `ratio` times the leader's time."""
    challenger = trial.challenger
    assert challenger is not None
    loser, winner = (trial.leader, challenger) if won else (challenger, trial.leader)
    loss = Loss(loser, winner, max(1.0, 1 / ratio if won else ratio))
    if won:
        # A leader that a look replaces was measured before another load: all others are compared with the new one.
        trial = changed(trial, leader=challenger, led=trial.tried, looks=0, losses=() if trial.looks else trial.losses)
    losses = (*trial.losses, loss)
    return _matched(changed(trial, challenger=None, tried=(), ratios=(), outstanding=0, losses=losses, median=None))


def _challenger_wins(trial: Trial) -> bool | None:
    """Return whether the challenger has won or lost; None if more calls are needed."""
    ratio = compared(trial)
    if ratio is None or trial.challenger is None:
        return None
    counted = len(trial.ratios)
    last = any(loss.loser == trial.challenger for loss in trial.losses)
    if counted < SHORT_COUNTED and (_is_short(trial.led) or _is_short(trial.tried)):
        return None
    lost = trial.tried[-1] * (1 - 1 / ratio)
    slow = min(trial.ratios) > HOPELESS or (ratio > SLOW and min(trial.tried) > max(trial.led, default=math.inf))
    if (counted > 1 and slow) or (ratio > HOPELESS and lost > ABSURD_SECONDS):
        return False
    part = _part(trial, trial.challenger)
    if counted < (LAST_COUNTED if last else LEAST_COUNTED):
        return None
    error = _error(trial.ratios)
    if counted >= MOST_COUNTED:
        to_scheme = (trial.leader < trial.vendors) - (trial.challenger < trial.vendors)
        return ratio * math.exp(to_scheme * LAST_SPREAD * error) < part
    error *= SPREAD
    if ratio * math.exp(error) < part:
        return True
    return False if ratio * math.exp(-error) > part else None


def _is_short(seconds: tuple[float, ...]) -> bool:
    """Return whether these are calls of fewer than SHORT seconds."""
    return bool(seconds) and statistics.median(seconds) < SHORT


def _part(trial: Trial, challenger: int) -> float:
    """Return the fraction of the leader's time that the challenger must stay below."""
    leads = trial.leader < trial.vendors
    if leads == (challenger < trial.vendors):
        return VENDOR_PART if trial.looks else 1.0 - LEAST_ERROR
    return VENDOR_PART if leads else 1 / VENDOR_PART


def _error(seconds: tuple[float, ...]) -> float:
    """Return the relative standard error of a median, by the median absolute deviation."""
    middle = statistics.median(seconds)
    deviation = statistics.median(abs(x - middle) for x in seconds)
    return max(LEAST_ERROR, 1.2533 * 1.4826 * deviation / (middle * math.sqrt(len(seconds))))


def _watched(trial: Trial, contender: int, seconds: float, calls: int) -> Trial:
    """Return a decided trial after some more calls, open for a comparison if it has become due."""
    since = trial.since + calls
    if trial.median is None:
        led = (*trial.led, seconds)
        median = statistics.median(led) if len(led) >= LEAST_COUNTED else None
        return changed(trial, led=led, median=median, since=since)
    away = contender == trial.leader and not 1 / DRIFT < seconds / trial.median < DRIFT
    drifted = trial.drifted + min(calls, DRIFTED // 2) if away else 0  # one reading alone may be a disturbance
    trial = changed(trial, since=since, drifted=drifted)
    return reopen(trial) if since >= AGAIN << max(trial.looks - 1, 0) or drifted >= DRIFTED else trial
