(* The checker of `Prices.v` is sound: a price list that it accepts bounds the makespan of every
   schedule that keeps the rules and the capacities of the stores. What tasks pay is at least what
   the dynamic program says, and at most what is for sale (PriceSales.v). *)

Require Import ZArith Lia List Bool FMapPositive.
From Bubbleproof Require Import Definitions Stores Starts Packing Instances Bounds PriceTables
  PricePayments Prices PriceSales.
Import ListNotations.
Open Scope Z_scope.

Lemma part_is_member : forall fs t,
  (exists n, Map.find t (parted fs) = Some n) <-> In t (concat (map flat fs)).
Proof.
  intros fs t. unfold parted. set (pairs := concat (map (fun _ => map _ _) _)). assert (E : map fst pairs = concat (map flat fs)).
  { unfold pairs. generalize 0%nat. induction fs as [|f fs IH]; intros n; [reflexivity|]. cbn.
    rewrite map_app, map_map, IH. f_equal. apply map_id. }
  rewrite <- E. clear. induction pairs as [|[u n] l IH]; cbn.
  - rewrite Map.gempty. split; [intros [n E]; discriminate | intros []].
  - destruct (Pos.eq_dec t u) as [->|D].
    + rewrite Map.gss. split; [left; reflexivity | intros _; exists n; reflexivity].
    + rewrite Map.gso by exact D. rewrite IH. split; [right; assumption|].
      intros [X|I]; [congruence | exact I].
Qed.

Section Sound.

Variables (l : table) (es inner : list (edge positive)) (stores : list (store positive)).
Variables (counts : Z -> bool) (s : positive -> Z) (first last h : Z).
Let k := index_of l.
Hypothesis V : plan k es stores s.
Hypothesis L : lies k counts s first last.
Hypothesis Short : last - first <= h.
Hypothesis Inner : incl inner es.
Let hs := heads l counts inner.
Let ts := tails l counts inner.
Let u t := s t - first.

Variables (rs : list Z) (css : list (Map.t changes)) (mus lams : list prices).
Let nodes_of := shape k (arcs_of inner) hs ts rs css.
Definition occupied t := map (fun r => existsb (Z.eqb r) (sites k t)) rs.
Definition pay (t : positive) (x : Z) :=
  toll (occupied t) mus (ticks k t) x + all_moved (map (changes_at t) css) lams (ticks k t) x.
Definition paid_by (ts : list positive) := total (map (fun t => pay t (u t)) ts).

Lemma node_true : forall parent t n, node_of k (arcs_of inner) hs ts rs css parent t = Some n ->
  known k t = true /\ 0 <= head n /\ 0 <= long n /\ head n <= u t /\
  u t - head n < Z.of_nat (room_of h n) /\ (forall x, pay_node mus lams n x = pay t x) /\
  0 <= ticks k t /\
  forall a, parent = Some a -> known k a = true -> u a + wait n <= u t.
Proof.
  intros parent t n H. unfold node_of in H.
  destruct (Map.find t hs) as [low|] eqn:Hd; [|discriminate].
  destruct (Map.find t ts) as [up|] eqn:Tl; [|discriminate].
  destruct (match parent with None => _ | Some a => _ end) as [w|] eqn:Par; [|discriminate].
  destruct (known k t) eqn:K; [|discriminate]. cbn [andb] in H.
  destruct ((0 <=? ticks k t) && (0 <=? low) && (0 <=? up)) eqn:B; [|discriminate].
  rewrite !andb_true_iff, !Z.leb_le in B. injection H as <-. cbn.
  pose proof (heads_hold l es stores counts s first last V L inner Inner t low Hd K).
  pose proof (tails_hold l es stores counts s first last V L inner Inner t up Tl K).
  fold k in H0. unfold u, room_of. cbn. repeat split; try lia.
  intros a -> Ka. destruct (lag_of (arcs_of inner) a t) as [lag|] eqn:G; [|discriminate].
  injection Par as <-. apply lag_is_edge, Inner in G.
  pose proof (kept k es stores s V a t lag G Ka K). lia.
Qed.

Definition sheets := map sheet_of.

Lemma node_value : forall parent t n kids a,
  node_of k (arcs_of inner) hs ts rs css parent t = Some n ->
  (forall first n, first <= u t -> u t - first < Z.of_nat n ->
    nth (Z.to_nat (u t - first)) (added (sheets mus) (sheets lams) h a first n) 0 <=
    paid_by (flat kids)) ->
  let vals := zip Z.add (own (sheets mus) (sheets lams) h n)
    (added (sheets mus) (sheets lams) h a (head n) (room_of h n)) in
  length vals = room_of h n /\ (Z.to_nat (u t - head n) < room_of h n)%nat /\
  nth (Z.to_nat (u t - head n)) vals 0 <= pay t (u t) + paid_by (flat kids).
Proof.
  intros parent t n kids a H Kids vals.
  destruct (node_true parent t n H) as (_ & Hd & Lo & From & To & Pay & _).
  destruct (shows_own mus lams h n Hd Lo) as [Len Own]. fold sheets in Len, Own.
  assert (E : length vals = room_of h n).
  { unfold vals. rewrite zip_length; rewrite Len; [|rewrite added_length]; reflexivity. }
  split; [exact E|]. split; [lia|]. unfold vals. rewrite zip_nth.
  - specialize (Kids (head n) (room_of h n) From To).
    rewrite Own by lia. rewrite Z2Nat.id by lia.
    replace (head n + (u t - head n)) with (u t) by lia. rewrite Pay. lia.
  - rewrite Len, added_length. reflexivity.
  - rewrite Len. lia.
Qed.

Lemma added_least : forall f a sh, nodes_of (Some a) f = Some sh -> known k a = true ->
  forall from n, from <= u a -> u a - from < Z.of_nat n ->
  nth (Z.to_nat (u a - from)) (added (sheets mus) (sheets lams) h sh from n) 0 <=
  paid_by (flat f).
Proof.
  induction f as [|t kids IHk next IHn]; intros a sh Sh Ka from n From To; cbn in Sh.
  - injection Sh as <-. cbn [added]. rewrite nth_repeat. apply Z.le_refl.
  - fold nodes_of in Sh.
    destruct (node_of k (arcs_of inner) hs ts rs css (Some a) t) as [m|] eqn:N; [|discriminate].
    destruct (nodes_of (Some t) kids) as [kids'|] eqn:Kids; [|discriminate].
    destruct (nodes_of (Some a) next) as [next'|] eqn:Next; [|discriminate].
    injection Sh as <-. destruct (node_true _ _ _ N) as (Kt & _ & _ & Ft & _ & _ & _ & Wait).
    specialize (Wait a eq_refl Ka).
    destruct (node_value (Some a) t m kids kids' N (IHk t kids' Kids Kt)) as (E & J & Vt).
    cbn [added flat]. rewrite zip_nth.
    + specialize (IHn a next' Next Ka from n From To).
      pose proof (shifted_least _ (from + wait m - head m) n (Z.to_nat (u a - from))
        (Z.to_nat (u t - head m)) ltac:(lia) (eq_ind_r (fun x => (_ < x)%nat) J E) ltac:(lia)) as S.
      unfold paid_by in *. cbn [map total]. rewrite map_app, total_app. lia.
    + unfold shifted. rewrite window_length, added_length. reflexivity.
    + unfold shifted. rewrite window_length. lia.
Qed.

Lemma least_is_least : forall f sh, nodes_of None f = Some sh ->
  least (sheets mus) (sheets lams) h sh <= paid_by (flat f).
Proof.
  induction f as [|t kids IHk next IHn]; intros sh Sh; cbn in Sh.
  - injection Sh as <-. apply Z.le_refl.
  - fold nodes_of in Sh.
    destruct (node_of k (arcs_of inner) hs ts rs css None t) as [m|] eqn:N; [|discriminate].
    destruct (nodes_of (Some t) kids) as [kids'|] eqn:Kids; [|discriminate].
    destruct (nodes_of None next) as [next'|] eqn:Next; [|discriminate].
    injection Sh as <-. destruct (node_true _ _ _ N) as (Kt & _).
    destruct (node_value None t m kids kids' N (added_least kids t kids' Kids Kt)) as (E & J & Vt).
    cbn [least]. set (vals := zip Z.add _ _) in *.
    pose proof (lows_least vals 0 (Z.to_nat (u t - head m)) ltac:(lia) ltac:(lia)) as Low.
    replace (nth 0 (lows vals) 0) with (List.hd 0 (lows vals)) in Low by (destruct (lows vals); reflexivity).
    specialize (IHn next' eq_refl).
    unfold paid_by in *. cbn [flat map total]. rewrite map_app, total_app. lia.
Qed.

Lemma shaped_is_placed : forall f parent sh, nodes_of parent f = Some sh -> all_placed h sh = true.
Proof.
  induction f as [|t kids IHk next IHn]; intros parent sh Sh; cbn in Sh.
  - injection Sh as <-. reflexivity.
  - fold nodes_of in Sh.
    destruct (node_of k (arcs_of inner) hs ts rs css parent t) as [m|] eqn:N; [|discriminate].
    destruct (nodes_of (Some t) kids) as [kids'|] eqn:Kids; [|discriminate].
    destruct (nodes_of parent next) as [next'|] eqn:Next; [|discriminate].
    injection Sh as <-. destruct (node_true _ _ _ N) as (_ & _ & _ & From & To & _).
    cbn [all_placed]. rewrite (IHk _ _ Kids), (IHn _ _ Next), !andb_true_r.
    apply Nat.ltb_lt. lia.
Qed.

Lemma paid_is_least : forall fs seen sum,
  (forall f x, In (f, x) seen -> x = least_placed (sheets mus) (sheets lams) h f) ->
  match paid (sheets mus) (sheets lams) h (map (nodes_of None) fs) seen sum with
  | None => True
  | Some None => False
  | Some (Some all) => all <= sum + paid_by (concat (map flat fs))
  end.
Proof.
  induction fs as [|f fs IH]; intros seen sum Seen; cbn [map paid]; [cbn; lia|].
  destruct (nodes_of None f) as [sh|] eqn:Sh; [|exact I].
  assert (Fnd : forall seen, (forall f x, In (f, x) seen -> x = least_placed (sheets mus) (sheets lams) h f) ->
    match find_shape sh seen with
    | Some x => x = least_placed (sheets mus) (sheets lams) h sh | None => True end).
  { clear. induction seen as [|[g x] seen IH]; intros H; cbn; [exact I|].
    destruct (same_forest sh g) as [->|D]; [apply H; left; reflexivity|].
    apply IH. intros f y J. apply H. right. exact J. }
  specialize (Fnd seen Seen). pose proof (least_is_least f sh Sh) as Low.
  pose proof (shaped_is_placed f None sh Sh) as Placed.
  assert (Go : forall now seen', now = least_placed (sheets mus) (sheets lams) h sh ->
    (forall f x, In (f, x) seen' -> x = least_placed (sheets mus) (sheets lams) h f) ->
    match (match now with
      | None => match paid (sheets mus) (sheets lams) h (map (nodes_of None) fs) seen' sum with
                | None => None | Some _ => Some None end
      | Some low => paid (sheets mus) (sheets lams) h (map (nodes_of None) fs) seen' (sum + low)
      end) with
    | None => True
    | Some None => False
    | Some (Some all) => all <= sum + paid_by (flat f ++ concat (map flat fs))
    end).
  { intros now seen' -> S. unfold least_placed. rewrite Placed.
    specialize (IH seen' (sum + least (sheets mus) (sheets lams) h sh) S).
    destruct (paid _ _ h _ seen' _) as [[all|]|]; [|exact IH|exact I].
    unfold paid_by in *. rewrite map_app, total_app. lia. }
  destruct (find_shape sh seen) as [x|]; [apply Go; [exact Fnd | exact Seen]|].
  apply Go; [reflexivity|]. intros g x [[= <- <-]|J]; [reflexivity | apply Seen, J].
Qed.
End Sound.

Lemma shapes_fine : forall k m hs ts rs css f parent sh, shape k m hs ts rs css parent f = Some sh ->
  forall t, In t (flat f) -> known k t = true /\ 0 <= ticks k t.
Proof.
  intros k m hs ts rs css. induction f as [|t kids IHk next IHn]; intros parent sh H u I;
    [destruct I|]. cbn in H.
  destruct (node_of k m hs ts rs css parent t) as [n|] eqn:N; [|discriminate].
  destruct (shape k m hs ts rs css (Some t) kids) as [a|] eqn:A; [|discriminate].
  destruct (shape k m hs ts rs css parent next) as [b|] eqn:B; [|discriminate].
  cbn in I. destruct I as [<-|I].
  - unfold node_of in N. destruct (Map.find t hs); [|discriminate].
    destruct (Map.find t ts); [|discriminate].
    destruct (match parent with None => _ | Some a => _ end); [|discriminate].
    destruct (known k t); [|discriminate]. cbn [andb] in N.
    destruct (Z.leb_spec 0 (ticks k t)); [split; [reflexivity|lia] | discriminate].
  - apply in_app_or in I as [I|I]; eauto.
Qed.

Lemma all_shaped : forall mus lams h shapes seen sum all,
  paid mus lams h shapes seen sum = Some all -> forall x, In x shapes -> x <> None.
Proof.
  intros mus lams h. induction shapes as [|[f|] shapes IH]; intros seen sum all H x I;
    [destruct I| |discriminate]. destruct I as [<-|I]; [discriminate|]. cbn [paid] in H.
  destruct (find_shape f seen) as [[low|]|].
  - exact (IH _ _ _ H x I).
  - destruct (paid mus lams h shapes seen sum) eqn:E; [|discriminate]. exact (IH _ _ _ E x I).
  - destruct (least_placed mus lams h f) as [low|]; [exact (IH _ _ _ H x I)|].
    destruct (paid mus lams h shapes _ sum) eqn:E; [|discriminate]. exact (IH _ _ _ E x I).
Qed.

(* The checker is sound: what it accepts bounds the makespan of every plan, and so of every right
   schedule. *)
Theorem prices_bound_plans : forall counts l es stores c,
  check_prices counts l es stores c = true -> bounds counts l es stores (least_makespan c).
Proof.
  intros counts l es stores c H s first last V L. unfold check_prices in H.
  rewrite !andb_true_iff in H. destruct H as [[[[[_ _] Once] _] _] H]. set (k := index_of l) in *.
  set (h := least_makespan c - 1) in *. apply distinct_is_once in Once as [Once _].
  destruct (Z_le_gt_dec (least_makespan c) (last - first)) as [Done|Short]; [exact Done|exfalso].
  assert (Sh : last - first <= h) by (unfold h; lia). clear Short.
  set (inner := filter _ es) in *. assert (In_ : incl inner es)
    by (intros e I; apply filter_In in I; apply I).
  destruct (prices_of h (of_resources c)) as [mus|] eqn:Mus; [|discriminate].
  destruct (prices_of h (of_stores c)) as [lams|] eqn:Lams; [|discriminate].
  destruct (stores_of stores (of_stores c)) as [sts|] eqn:Sts; [|discriminate].
  set (css := map (fun st => changes_of (events _ st)) sts) in *.
  set (rs := map priced (of_resources c)) in *.
  pose proof (paid_is_least l es inner stores counts s first last h V L Sh In_ rs css mus lams
    (parts c) [] 0 (fun f x I => match I with end)) as Paid.
  fold k in Paid. unfold sheets in Paid.
  set (shapes := map (shape k _ _ _ rs css None) (parts c)) in *.
  pose proof (all_shaped (map sheet_of mus) (map sheet_of lams) h shapes [] 0) as All.
  destruct (paid _ _ h shapes [] 0) as [[sum|]|]; [|exact Paid|discriminate].
  specialize (All _ eq_refl). apply Z.ltb_lt in H.
  set (nodes := concat (map flat (parts c))) in *.
  assert (Fine : forall t, In t nodes -> known k t = true /\ 0 <= ticks k t).
  { intros t I. apply in_concat in I as (ts & I & J). apply in_map_iff in I as (f & <- & I).
    specialize (All (shape k _ _ _ rs css None f) (in_map _ _ _ I)).
    destruct (shape k _ _ _ rs css None f) as [sh|] eqn:E; [|destruct All; reflexivity].
    exact (shapes_fine _ _ _ _ _ _ f None sh E t J). }
  destruct (stores_are stores _ sts Sts) as [Is Cap].
  pose proof (tolls_sold l es stores s first V nodes Once Fine mus rs
    (prices_are h _ mus Mus)) as Tolls.
  pose proof (stores_sold l es stores s first V nodes Once (parted (parts c))
    (part_is_member (parts c)) sts lams Is Cap (prices_are h _ lams Lams)) as Moves.
  fold k in Tolls, Moves. fold css in Moves. unfold paid_by, pay in Paid.
  rewrite total_plus in Paid. unfold occupied in Paid. fold k in Paid.
  cbv beta in Tolls, Moves. lia.
Qed.

Theorem prices_sound : forall counts l es stores c, check_prices counts l es stores c = true ->
  forall rows first last,
    valid positive (instance l es) rows ->
    in_memory positive Pos.eq_dec (instance l es) stores rows ->
    spans counts (instance l es) rows first last -> least_makespan c <= last - first.
Proof.
  intros counts l es stores c H. apply bounded_schedules; [|exact (prices_bound_plans _ _ _ _ _ H)].
  unfold check_prices in H. rewrite !andb_true_iff in H. apply H.
Qed.
