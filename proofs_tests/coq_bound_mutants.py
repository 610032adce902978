"""Those of the lemmas about choices, one rank, windows and propagation (lemmas 16 to 20)."""

from __future__ import annotations

BOUND_MUTANTS = {
    "an addition that takes away from a store": (
        "Relaxation.v",
        "(0 <=? summed false cs) && (0 <=?",
        "true && (0 <=?",
    ),
    "an addition that takes away in the end": (
        "Relaxation.v",
        "(0 <=? summed false cs + summed true cs)",
        "true",
    ),
    "a choice of tasks of -1 ticks": (
        "Relaxation.v",
        "no_negative (with_tasks l (done ++ open)) &&",
        "no_negative (with_tasks l done) &&",
    ),
    "less room than a pool has": (
        "Relaxation.v",
        "=> Some (c + more)",
        "=> Some (c + more - 1)",
    ),
    "a choice without what it adds": (
        "Cases.v",
        "Some (pools, p) :: more => check_case c pools p &&",
        "Some (pools, p) :: more => check_case (Case [] []) pools p &&",
    ),
    "a case with nothing to ask and no certificate": (
        "Cases.v",
        "[] => false | _ => walk_cases",
        "[] => walk_cases rest more | _ => walk_cases",
    ),
    "a part that is missing": ("Cases.v", "qs)) (ways q)\n", "qs)) (tl (ways q))\n"),
    "a question that is not asked": (
        "Cases.v",
        "answered (remaining w qs) ws ->",
        "answered (tl (remaining w qs)) ws ->",
    ),
    "a certificate of less than is claimed": (
        "Shown.v",
        "(least <=? least_makespan c) &&",
        "(least - 1 <=? least_makespan c) &&",
    ),
    "a life a tick longer": (
        "Staged.v",
        "fwd n g i + bwd n g i +\n",
        "fwd n g i + bwd n g i + 1 +\n",
    ),
    "a head that begins later": (
        "Staged.v",
        "head n h + fwd n h 0 + message n h",
        "head n h + fwd n h 0 + message n h + 1",
    ),
    "a W that may end after the gradient has gone": (
        "Staged.v",
        "(negb (whole n) || Pos.eqb t b || ends_before t b)",
        "true",
    ),
    "a message that takes time off": ("Staged.v", "(0 <=? message n g) &&", "true &&"),
    "what a rank computes, counted twice": (
        "RankClaims.v",
        "distinct (own_tasks n nm r) (Map.empty unit) &&",
        "true &&",
    ),
    "a rank's claim raised by one": (
        "RankClaims.v",
        "claimed c <= last - first.",
        "claimed c < last - first.",
    ),
    "an activation given back when B starts": (
        "RankClaims.v",
        "Pos.eqb (owner _ e) b && at_end _ e ||",
        "Pos.eqb (owner _ e) b ||",
    ),
    "more given back than was held": (
        "RankClaims.v",
        "0 <=? units n g + total (map (delta _)",
        "-1 <=? units n g + total (map (delta _)",
    ),
    "one activation less than fits": (
        "RankClaims.v",
        "room - room mod units n g |",
        "room - room mod units n g - units n g |",
    ),
    "a stage that lives for no time": ("NoRoom.v", "0 <? life_of n g", "0 <=? life_of n g"),
    "a slice more than there is": (
        "NoRoom.v",
        "then Z.of_nat (slices n) * units n g",
        "then (Z.of_nat (slices n) + 1) * units n g",
    ),
    "two tasks of a window in one": (
        "Windows.v",
        "distinct (map (image im) ts) (Map.empty unit) &&",
        "true &&",
    ),
    "a clock that excludes more": (
        "Windows.v",
        "(negb (on_clock t) || existsb (Z.eqb (shared_by w)) (sites k u)).",
        "true.",
    ),
    "a precedence that no path of the problem keeps": (
        "Windows.v",
        "(ticks k (image im a) + lag).",
        "(ticks k (image im a) + lag - 1).",
    ),
    "a use of a window's store twice": ("Windows.v", "pairs_once (uses_of p) &&", "true &&"),
    "a window with less room": (
        "Windows.v",
        "(given_c - base _ given <=? c - base _ st)",
        "(given_c - base _ given <=? c - base _ st + 1)",
    ),
    "what counts after the rear": (
        "Windows.v",
        "(ticks k u - ticks k (rear w))",
        "(ticks k u - ticks k (rear w) - 1)",
    ),
    "windows raised by one": (
        "WindowRows.v",
        "claim <= last - first.",
        "claim < last - first.",
    ),
    "windows that claim a tick more": (
        "WindowRows.v",
        "(claim <=? head + n + tail)",
        "(claim - 1 <=? head + n + tail)",
    ),
    "more uses than there are": ("Uses.v", "negb (existsb (fun y =>", "negb (forallb (fun y =>"),
    "a literal that is false a tick too soon": (
        "Facts.v",
        "Some y => y <? n |",
        "Some y => y <=? n |",
    ),
    "an order that its own reverse refutes": (
        "Facts.v",
        "is_ahead f b a && (0 <? ticks k a + ticks k b)",
        "is_ahead f b a",
    ),
    "one of two that share nothing": (
        "Facts.v",
        "existsb (fun r => existsb (Z.eqb r) (sites k b)) (sites k a).",
        "true.",
    ),
    "a crowd a tick longer": (
        "Absurd.v",
        "Some x, Some y => y <? x + busy",
        "Some x, Some y => y <=? x + busy",
    ),
    "a stop that may be yet to come": (
        "Absurd.v",
        "Some e => passed f e t |",
        "Some e => true |",
    ),
    "a stop that may be over": ("Absurd.v", "Some e => coming f e t |", "Some e => true |"),
    "a store that is just full": ("Absurd.v", "(cap <? base _ st", "(cap <=? base _ st"),
    "a use that is over": ("Absurd.v", "(0 <? ticks k t + later)", "true"),
    "an edge carried over a task of -1 ticks": (
        "Trail.v",
        "is_ahead f b c && (0 <=? ticks k b)",
        "is_ahead f b c",
    ),
    "a literal of which another may be true": (
        "Trail.v",
        "(firstn j c ++ skipn (S j) c)",
        "(firstn j c)",
    ),
    "a lemma that supposes too much": ("Trail.v", "limit - ticks k t", "limit - ticks k t - 1"),
    "a trail raised by one": (
        "Trail.v",
        "least <= last - first.\nProof.",
        "least < last - first.\nProof.",
    ),
    "a plan's candidate without a proof": (
        "Plans.v",
        "Some b => check_bounded s least b p | None => false",
        "Some b => check_bounded s least b p | None => true",
    ),
    "a plan's candidate by the proof of another": (
        "Plans.v",
        "if candidate_eq (which b) c then true else false",
        "if candidate_eq (which b) c then true else true",
    ),
    "no room whatever is chosen": (
        "Plans.v",
        "nothing_open b &&\n      (well_written",
        "true &&\n      (well_written",
    ),
    "what is open left out of what a rank computes": (
        "Plans.v",
        "check_choices l stores open && check_relaxed l stores [] open [] &&",
        "check_choices l stores open && true &&",
    ),
    "a pipeline whose stores are others": (
        "Given.v",
        "instance l es = problem_of p /\\ stores = stores_of p",
        "instance l es = problem_of p /\\ [] = stores_of p",
    ),
}
