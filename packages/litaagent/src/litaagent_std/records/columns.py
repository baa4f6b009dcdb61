"""A world's negotiations as numpy columns, with what follows from the order of their turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from litaagent_std.policy.arrays import Bools, Floats, Ints
from litaagent_std.records.storage.segment import RecordsDamagedError, Tables

__all__ = ["ACCEPT", "END", "REJECT", "WorldColumns", "floats", "ints"]


ACCEPT: Final = 0
REJECT: Final = 1
END: Final = 2

_ACCEPTED: Final = 0


@dataclass(frozen=True, slots=True)
class WorldColumns:
    """Negotiations and turns of a world; a turn is a row of the table ``turns``.

    Attributes:
        n_days: Days of the world.
        horizon: The league's horizon.
        n_rounds: Rounds allowed per negotiation.
        day: Day of each negotiation.
        buyer: Its buying seat.
        seller: Its selling seat.
        caller: Its first proposer.
        product: Its product.
        first_offer: Index of its first offer among all offers of the world.
        n_offers: Offers that were made in it.
        offers: All offers as (quantity, delivery day, unit price), in the order of negotiations and turns.
        offer_by: Seat that made each offer.
        offer_round: Rounds completed before it.
        thread: Negotiation of each turn.
        factory: Seat that acts.
        round: Rounds completed before it.
        answers: Whether it answers an offer.
        op: Operation: `ACCEPT`, `REJECT` (with an offer of its own, the first one too) or `END`.
        before: Offers of its negotiation before it.
        own_offer: Index of its own offer among all offers; valid where it is a `REJECT`.
        received: Index of the offer on the table before it; valid where it answers.
        taken: Whether the partner accepted its offer: 1 or 0; -1 if there was no offer, or no answer to it.
        bankrupt: Whether each factory is bankrupt at day start, [day, factory].
    """

    n_days: int
    horizon: int
    n_rounds: int
    day: Ints
    buyer: Ints
    seller: Ints
    caller: Ints
    product: Ints
    first_offer: Ints
    n_offers: Ints
    offers: Ints
    offer_by: Ints
    offer_round: Ints
    thread: Ints
    factory: Ints
    round: Ints
    answers: Bools
    op: Ints
    before: Ints
    own_offer: Ints
    received: Ints
    taken: Ints
    bankrupt: Bools

    @classmethod
    def of(cls, tables: Tables) -> WorldColumns:
        """Read a world.

        Raises:
            RecordsDamagedError: If its turns do not belong to its negotiations.
        """
        n, t, [facts] = tables["negotiations"], tables["turns"], tables["worlds"].to_pylist()
        n_turns = ints(n["n_turns"])
        thread = np.repeat(np.arange(len(n_turns)), n_turns)  # [turn] number of its negotiation
        _check_turns(tables, thread)
        has, quantity = _present(t["quantity"]), ints(t["quantity"])
        offers = np.stack([quantity, ints(t["time"]), ints(t["unit_price"])], axis=1)[has]  # [offer, 3]
        earlier: Ints = np.cumsum(has) - has  # [turn] offers of the world before it
        starts = np.cumsum(n_turns) - n_turns  # [negotiation] its first turn
        first_offer = np.append(earlier, has.sum())[starts]  # [negotiation]
        # an accepted response, an offer, or neither
        answers, response = _present(t["response"]), ints(t["response"])
        op = np.where(answers & (response == _ACCEPTED), ACCEPT, np.where(has, REJECT, END))
        return cls(
            n_days=facts["n_days"],
            horizon=facts["horizon"],
            n_rounds=facts["n_rounds"],
            day=ints(n["day"]),
            buyer=ints(n["buyer"]),
            seller=ints(n["seller"]),
            caller=ints(n["caller"]),
            product=ints(n["product"]),
            first_offer=first_offer,
            n_offers=np.append(first_offer[1:], has.sum()) - first_offer,
            offers=offers,
            offer_by=ints(t["factory"])[has],
            offer_round=ints(t["round"])[has],
            thread=thread,
            factory=ints(t["factory"]),
            round=ints(t["round"]),
            answers=answers,
            op=op,
            before=earlier - first_offer[thread],
            own_offer=earlier,
            received=earlier - 1,
            taken=_taken(thread, op),
            bankrupt=bankrupt_days(tables["days"], facts["n_days"], tables["factories"].num_rows),
        )


def ints(column: Any) -> Ints:  # noqa: ANN401 - an Arrow column
    """Return an Arrow column as integers, -1 where it is null."""
    filled = column.fill_null(-1) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)


def floats(column: Any) -> Floats:  # noqa: ANN401 - an Arrow column
    """Return an Arrow column as floats."""
    return np.asarray(column.to_numpy(), np.float64)


def _present(column: Any) -> Bools:  # noqa: ANN401 - an Arrow column
    return np.asarray(column.is_valid().to_numpy(), np.bool_)


def _check_turns(tables: Tables, thread: Ints) -> None:
    n, t = tables["negotiations"], tables["turns"]
    fits = t.num_rows == len(thread)
    for name in ("day", "negotiation"):
        fits = fits and np.array_equal(ints(t[name]), ints(n[name])[thread])
    if not fits:
        raise RecordsDamagedError(
            f"the turns of world {tables['worlds']['world'][0]} do not follow its negotiations",
            "turns are ordered by negotiation, and each negotiation says how many it has",
            "run lita records PATH --verify, and collect the tournament again if it finds damage",
        )


def _taken(thread: Ints, op: Ints) -> Ints:
    """Return whether the next turn of the same negotiation accepts, for turns that offer."""
    taken = np.full(len(op), -1)
    answered = np.flatnonzero((thread[:-1] == thread[1:]) & (op[:-1] == REJECT)) if len(op) else np.array([], np.int64)
    taken[answered] = op[answered + 1] == ACCEPT
    return taken


def bankrupt_days(table: pa.Table, n_days: int, n_seats: int) -> Bools:
    """Return whether each factory is bankrupt at the start of each day, [day, factory]."""
    bankrupt = np.zeros((n_days, n_seats), np.bool_)
    bankrupt[ints(table["day"]), ints(table["factory"])] = table["bankrupt"].to_numpy()
    return bankrupt
