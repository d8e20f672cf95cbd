(* {title}

   Theorem scheme_is_correct: for all integer matrices a and b, the products and sums of the scheme
   give {denominator}a b{structure}. Both sides are polynomials in the entries of a times those of b, so the identity
   holds for blocks that do not commute as well. Check with: coqc FILE.v *)

Require Import ZArith List Bool.
Import ListNotations.
Open Scope Z_scope.

Definition place := (Z * Z * Z)%type. (* row, column, coefficient; rows and columns count from 1 *)

Definition scheme : list (list place * list place * list place) := [
{products}
].

Definition inner : list Z := [{inner}].
Definition outputs : list (Z * Z) := [{outputs}].
Definition absent_a : list (Z * Z) := [{absent_a}].
Definition absent_b : list (Z * Z) := [{absent_b}].

Definition one : Z := {one}. (* the product of the common denominators *)

Definition named (l : list (Z * Z)) (i j : Z) : bool :=
  existsb (fun p => (fst p =? i) && (snd p =? j)) l.

Definition coefficient (f : list place) (i j : Z) : Z :=
  fold_right (fun '(x, y, c) rest => (if (x =? i) && (y =? j) then c else 0) + rest) 0 f.

Section Statement.
  Variables a b : Z -> Z -> Z.

  (* A sum of entries of a matrix. *)
  Fixpoint sum_of (x : Z -> Z -> Z) (f : list place) : Z :=
    match f with
    | [] => 0
    | (i, j, c) :: rest => c * x i j + sum_of x rest
    end.

  (* What the scheme computes at (i, j): each product once, a sum of a times a sum of b. *)
  Fixpoint output_of (s : list (list place * list place * list place)) (i j : Z) : Z :=
    match s with
    | [] => 0
    | (u, v, w) :: rest => coefficient w i j * (sum_of a u * sum_of b v) + output_of rest i j
    end.
  Definition output (i j : Z) : Z := output_of scheme i j.

  (* What is wanted: the entry of the product of the matrices, absent entries being zero. *)
  Fixpoint wanted_of (ls : list Z) (i j : Z) : Z :=
    match ls with
    | [] => 0
    | l :: rest => (if named absent_a i l || named absent_b l j then 0 else a i l * b l j) + wanted_of rest i j
    end.
  Definition wanted (i j : Z) : Z := wanted_of inner i j.

  (* A bilinear form: for an entry (i, l) of a, a sum of entries of b that it is multiplied with. *)
  Definition row := (Z * Z * list place)%type.

  Fixpoint total (rows : list row) : Z :=
    match rows with
    | [] => 0
    | (i, l, f) :: rest => a i l * sum_of b f + total rest
    end.

  Fixpoint insert (k j c : Z) (f : list place) : list place :=
    match f with
    | [] => [(k, j, c)]
    | (k', j', c') :: rest =>
        if (k =? k') && (j =? j') then (k', j', c + c') :: rest else (k', j', c') :: insert k j c rest
    end.

  Lemma insert_sound : forall k j c f, sum_of b (insert k j c f) = c * b k j + sum_of b f.
  Proof.
    intros k j c f; induction f as [| [[k' j'] c'] f IH]; [reflexivity |].
    cbn [insert]. destruct ((k =? k') && (j =? j')) eqn:same; cbn [sum_of].
    - apply andb_prop in same as [Ek Ej]. apply Z.eqb_eq in Ek, Ej; subst. ring.
    - rewrite IH. ring.
  Qed.

  Fixpoint add (c : Z) (v f : list place) : list place :=
    match v with
    | [] => f
    | (k, j, d) :: rest => insert k j (c * d) (add c rest f)
    end.

  Lemma add_sound : forall c v f, sum_of b (add c v f) = c * sum_of b v + sum_of b f.
  Proof.
    intros c v f; induction v as [| [[k j] d] v IH]; cbn [add sum_of]; [ring |].
    rewrite insert_sound, IH. ring.
  Qed.

  Fixpoint add_row (i l c : Z) (v : list place) (rows : list row) : list row :=
    match rows with
    | [] => [(i, l, add c v [])]
    | (i', l', f) :: rest =>
        if (i =? i') && (l =? l') then (i', l', add c v f) :: rest else (i', l', f) :: add_row i l c v rest
    end.

  Lemma add_row_sound : forall i l c v rows,
    total (add_row i l c v rows) = c * a i l * sum_of b v + total rows.
  Proof.
    intros i l c v rows; induction rows as [| [[i' l'] f] rows IH]; cbn [add_row total].
    - rewrite add_sound. cbn [sum_of]. ring.
    - destruct ((i =? i') && (l =? l')) eqn:same; cbn [total].
      + apply andb_prop in same as [Ei El]. apply Z.eqb_eq in Ei, El; subst. rewrite add_sound. ring.
      + rewrite IH. ring.
  Qed.

  Fixpoint expand (c : Z) (u v : list place) (rows : list row) : list row :=
    match u with
    | [] => rows
    | (i, l, d) :: rest => add_row i l (c * d) v (expand c rest v rows)
    end.

  Lemma expand_sound : forall c u v rows,
    total (expand c u v rows) = c * (sum_of a u * sum_of b v) + total rows.
  Proof.
    intros c u v rows; induction u as [| [[i l] d] u IH]; cbn [expand sum_of]; [ring |].
    rewrite add_row_sound, IH. ring.
  Qed.

  Fixpoint expanded (i j : Z) (s : list (list place * list place * list place)) : list row :=
    match s with
    | [] => []
    | (u, v, w) :: rest =>
        let c := coefficient w i j in if c =? 0 then expanded i j rest else expand c u v (expanded i j rest)
    end.

  Lemma expanded_sound : forall i j s, total (expanded i j s) = output_of s i j.
  Proof.
    intros i j s; induction s as [| [[u v] w] s IH]; [reflexivity |].
    cbn [expanded output_of]. cbv zeta.
    destruct (coefficient w i j =? 0) eqn:none.
    - apply Z.eqb_eq in none. rewrite none, IH. ring.
    - rewrite expand_sound, IH. reflexivity.
  Qed.

  Fixpoint without (i j : Z) (ls : list Z) (rows : list row) : list row :=
    match ls with
    | [] => rows
    | l :: rest =>
        if named absent_a i l || named absent_b l j then without i j rest rows
        else add_row i l (- one) [(l, j, 1)] (without i j rest rows)
    end.

  Lemma without_sound : forall i j ls rows, total (without i j ls rows) = total rows - one * wanted_of ls i j.
  Proof.
    intros i j ls rows; induction ls as [| l rest IH]; cbn [without wanted_of]; [ring |].
    destruct (named absent_a i l || named absent_b l j).
    - rewrite IH. ring.
    - rewrite add_row_sound, IH. cbn [sum_of]. ring.
  Qed.

  Definition zero_form (f : list place) : bool := forallb (fun '(_, _, c) => c =? 0) f.

  Lemma zero_form_sound : forall f, zero_form f = true -> sum_of b f = 0.
  Proof.
    induction f as [| [[k j] c] f IH]; cbn [zero_form forallb sum_of]; intros H; [reflexivity |].
    apply andb_prop in H as [Hc Hrest]. apply Z.eqb_eq in Hc; subst.
    fold (zero_form f) in Hrest. rewrite (IH Hrest). ring.
  Qed.

  Definition all_zero (rows : list row) : bool := forallb (fun '(_, _, f) => zero_form f) rows.

  Lemma all_zero_sound : forall rows, all_zero rows = true -> total rows = 0.
  Proof.
    induction rows as [| [[i l] f] rows IH]; cbn [all_zero forallb total]; intros H; [reflexivity |].
    apply andb_prop in H as [Hf Hrest]. rewrite (zero_form_sound f Hf).
    fold (all_zero rows) in Hrest. rewrite (IH Hrest). ring.
  Qed.
End Statement.

Definition check : bool :=
  forallb (fun '(i, j) => all_zero (without i j inner (expanded i j scheme))) outputs.

Lemma check_holds : check = true.
Proof. vm_compute. reflexivity. Qed.

Theorem scheme_is_correct :
  forall (a b : Z -> Z -> Z) (i j : Z), In (i, j) outputs -> output a b i j = one * wanted a b i j.
Proof.
  intros a b i j H.
  pose proof check_holds as holds. unfold check in holds. rewrite forallb_forall in holds.
  specialize (holds (i, j) H). cbn beta iota in holds.
  pose proof (all_zero_sound a b _ holds) as sum.
  rewrite without_sound, expanded_sound in sum. unfold output, wanted.
  exact (proj1 (Z.sub_move_0_r _ _) sum).
Qed.

Print Assumptions scheme_is_correct.
