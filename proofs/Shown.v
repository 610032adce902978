(* Certificates of all kinds as one: by one resource, by one store, by what it holds for how long, by
   prices, by a trail of lemmas. What is made of bounds takes any of them. *)

Require Import ZArith Lia List Bool.
From Bubbleproof Require Import Definitions Stores Instances Bounds OneMachine Prices PricesSound
  Groups Lifecycles FreeEdges OneStore Volume VolumeSound Trail.
Import ListNotations.
Open Scope Z_scope.

(* Groups, lives, and the edges that they justify together with the problem's own. *)
Record free := Free { groups : list group; lives : list life; all : list (edge positive) }.

Inductive shown :=
  | ByMachine (f : free) (c : certificate)
  | ByStore (f : free) (c : store_claim)
  | ByVolume (f : free) (c : volume_claim)
  | ByPrices (c : price_list)
  | ByTrail (f : free) (bound : Z) (items : list item).

Definition is_free (l : table) (es : list (edge positive)) (stores : list (store positive))
    (f : free) := check_free l es stores (groups f) (lives f) (all f).

Definition check_shown (counts : Z -> bool) (l : table) (es : list (edge positive))
    (stores : list (store positive)) (least : Z) (p : shown) : bool :=
  match p with
  | ByMachine f c =>
      (least <=? claim c) && (is_free l es stores f && check_one_machine counts l (all f) c)
  | ByStore f c =>
      (least <=? store_bound c) &&
      (is_free l es stores f && check_one_store counts l (all f) stores c)
  | ByVolume f c =>
      (least <=? volume_bound c) &&
      (is_free l es stores f && check_volume counts l es (all f) stores (lives f) c)
  | ByPrices c => (least <=? least_makespan c) && check_prices counts l es stores c
  | ByTrail f bound items =>
      (least <=? bound) && check_trail counts l es stores (groups f) (lives f) (all f) bound items
  end.

Theorem shown_bounds_plans : forall counts l es stores least p,
  check_shown counts l es stores least p = true -> bounds counts l es stores least.
Proof.
  intros counts l es stores least p H. enough (exists b, least <= b /\ bounds counts l es stores b)
    as (b & Le & B) by (intros s first last V L; specialize (B s first last V L); lia).
  destruct p as [f c|f c|f c|c|f bound items]; cbn [check_shown] in H; apply andb_true_iff in H as [Le H];
    apply Z.leb_le in Le; eexists; (split; [exact Le|]).
  - apply andb_true_iff in H as [F C].
    exact (free_edges _ _ _ _ _ _ F counts _ (one_machine_bound counts l _ c C stores)).
  - apply andb_true_iff in H as [F C].
    exact (free_edges _ _ _ _ _ _ F counts _ (one_store_bound counts l _ stores c C)).
  - exact (volume_bounds_plans counts l es stores _ _ _ c H).
  - exact (prices_bound_plans counts l es stores c H).
  - exact (trail_bounds_plans counts l es stores _ _ _ bound items H).
Qed.
