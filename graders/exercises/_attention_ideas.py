"""What people write instead of attention: the catalogue, in the words that its authors read.

A row says which choice is made wrongly (`_attention_faults`), and serves every function that can suffer from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from graders.exercises import _attention_faults as faults

Fault = dict[str, Any]


@dataclass(frozen=True)
class Idea:
    """One entry of the catalogue, in the words of `Exercise.add_misconception`."""

    name: str
    replaces: str
    first_fails: str
    sentence: str
    hint: str
    answer: Any = None
    faults: Fault | None = None


FAMILIES: dict[str, tuple[str, Callable[..., Any]]] = {
    "fused": ("fused_self_attention", lambda **fault: partial(faults.fused, **fault)),
    "causal": ("causal_attention", lambda **fault: partial(faults.separate, **fault)),
    "cross": ("cross_attention", lambda **fault: partial(faults.cross, **fault)),
    "torch": ("causal_attention_torch", lambda **fault: partial(faults.separate, **fault)),
    "head": ("SingleHead", faults.head),
    "linear": ("to_linear", faults.linear),
}

_EVERY = "fused causal cross torch head"
_SEPARATE = "causal cross torch"
_MASKED = "causal torch"

_WHICH_SCALE = "What exactly does the contract multiply the scores by, or divide them by?"
_WHICH_SIZE = "A dot product grows with the number of its terms: which size counts those?"
_WHICH_ROLE = "A query asks, a key is asked, a value is handed over: which name stands where in softmax(QKᵀ)V?"
_WHICH_AXIS = "Which axis holds the keys? Along that one the weights of a query sum to 1."
_WHICH_BLOCK = "Columns 0 to d_k−1 are W_Q, the next d_k are W_K, the last d_k are W_V: slice or split the last axis."
_WHICH_KEYS = "Write down which keys the first, second and last token may see, and print your mask for T = 3."
_MASK_FIRST = "Mask the scores with −∞ before the softmax: then the others share everything."
_SOFT = "What turns a row of scores into positive numbers that sum to 1?"
_SHIFT = "Subtract from each row its own maximum: the weights stay the same and exp stays within 0 and 1."

_WITHOUT_COPY = "W *= 2 writes into the array that you were given; W = W * 2 makes a new one."
_FRACTIONS = "np.zeros_like(X) takes over X's dtype: with integers, every fraction that you store there is cut off."
_HALF = "float16 keeps three digits and ends at 65504: leave the arrays as they come, or use float64."
_BATCH = "np.swapaxes(K, -1, -2) turns the last two axes and leaves a batch alone."

_Row = tuple[str, str, Fault, str, str]

_CHOICES: list[_Row] = [
    # what scales the scores
    ("forgets_scale", _EVERY, {"scaling": "none"}, "You do not scale the scores before the softmax.", _WHICH_SCALE),
    (
        "divides_by_d_k",
        _EVERY,
        {"scaling": "width"},
        "You divide the scores by d_k, which is √d_k twice.",
        _WHICH_SCALE,
    ),
    (
        "divides_by_root_d_k",
        "fused",
        {"scaling": "root_d_k"},
        "You divide the scores by √d_k and do not use the scale that you are given.",
        _WHICH_SCALE,
    ),
    (
        "divides_by_root_d",
        _EVERY,
        {"scaling": "root_d"},
        "You divide the scores by the root of the model width d, not of the head width d_k.",
        _WHICH_SIZE,
    ),
    (
        "divides_by_root_tokens",
        _EVERY,
        {"scaling": "root_tokens"},
        "You divide the scores by √T, the root of the number of tokens.",
        _WHICH_SIZE,
    ),
    (
        "divides_by_root_d_v",
        _SEPARATE,
        {"scaling": "root_d_v"},
        "You divide the scores by √d_v, the root of the width of the values.",
        _WHICH_SIZE,
    ),
    (
        "inverts_scale",
        _EVERY,
        {"scaling": "inverse"},
        "You divide where the scores should be multiplied, or multiply where they should be divided.",
        _WHICH_SCALE,
    ),
    ("scales_twice", "fused", {"scaling": "twice"}, "You scale the scores twice.", _WHICH_SCALE),
    (
        "scales_weights",
        _EVERY,
        {"scaling": "after"},
        "You scale after the softmax, so that the weights no longer sum to 1.",
        "The scale belongs to the scores: it decides how sharp the softmax is.",
    ),
    # which block plays which role
    (
        "swaps_queries_and_keys",
        _EVERY,
        {"roles": "KQV"},
        "You swapped queries and keys: row i of your scores holds how others ask for token i.",
        _WHICH_ROLE,
    ),
    (
        "compares_queries",
        _EVERY,
        {"roles": "QQV"},
        "You compare queries with queries; the keys are never used.",
        _WHICH_ROLE,
    ),
    ("compares_keys", _EVERY, {"roles": "KKV"}, "You compare keys with keys; the queries are never used.", _WHICH_ROLE),
    ("mixes_keys", _EVERY, {"roles": "QKK"}, "You mix the keys where the values belong.", _WHICH_ROLE),
    ("mixes_queries", _EVERY, {"roles": "QKQ"}, "You mix the queries where the values belong.", _WHICH_ROLE),
    ("swaps_keys_and_values", _EVERY, {"roles": "QVK"}, "You swapped keys and values.", _WHICH_ROLE),
    (
        "reverses_blocks",
        "fused head",
        {"roles": "VKQ"},
        "You read the three blocks as V, K, Q; they lie in the order Q, K, V.",
        _WHICH_BLOCK,
    ),
    # what turns scores into weights
    (
        "softmax_over_queries",
        _EVERY,
        {"weigh": "over_queries"},
        "You take the softmax over the queries: columns of your weights sum to 1, not rows.",
        _WHICH_AXIS,
    ),
    (
        "softmax_over_batch",
        "fused cross head",
        {"weigh": "over_first"},
        "You take the softmax over axis 0, which is the batch as soon as there is one.",
        _WHICH_AXIS,
    ),
    (
        "softmax_over_axis_1",
        "fused",
        {"weigh": "over_second"},
        "You take the softmax over axis 1, which holds the keys of one sequence but the queries of a batch.",
        "Counted from the end, the keys are always axis −1.",
    ),
    (
        "softmax_over_everything",
        _EVERY,
        {"weigh": "over_everything"},
        "You take one softmax over all scores, so that all weights together sum to 1.",
        _WHICH_AXIS,
    ),
    ("forgets_softmax", _EVERY, {"weigh": "raw"}, "You use the scores as weights, without a softmax.", _SOFT),
    (
        "takes_only_the_best",
        _EVERY,
        {"weigh": "hard"},
        "You take the value of the best key alone; attention is a blend of all.",
        _SOFT,
    ),
    (
        "weighs_evenly",
        _EVERY,
        {"weigh": "even"},
        "You give all keys the same weight, whatever their scores.",
        "Where do the scores enter your weights?",
    ),
    (
        "attends_to_itself",
        "fused causal torch head",
        {"weigh": "itself"},
        "You give each token its own value: your weights are the identity.",
        "Where do the scores enter your weights?",
    ),
    (
        "overflows",
        _EVERY,
        {"weigh": "overflowing"},
        "You take exp of the scores as they are, which overflows for large ones.",
        _SHIFT,
    ),
    (
        "shifts_by_one_maximum",
        _EVERY,
        {"weigh": "one_shift"},
        "You subtract one maximum from all rows; a row far below it becomes 0/0.",
        _SHIFT,
    ),
    (
        "forgets_keepdims",
        "fused causal torch",
        {"weigh": "without_keepdims"},
        "You divide by the sums without keepdims, so that they line up with the columns, not the rows.",
        "The sums of (T, T) weights have shape (T,): what must it be to divide each row by its own?",
    ),
    (
        "rounds_weights",
        _EVERY,
        {"weigh": "rounded"},
        "You round the weights to two decimals before you mix.",
        "Round what you print, never what you go on with.",
    ),
    (
        "keeps_log_weights",
        "fused cross head",
        {"weigh": "log"},
        "You mix with the logarithms of the weights: the exp at the end is missing.",
        _SOFT,
    ),
    (
        "divides_by_plain_sums",
        "fused cross",
        {"weigh": "shares"},
        "You divide the scores by their sum, without exp.",
        _SOFT,
    ),
    (
        "uses_sigmoid",
        "fused cross head",
        {"weigh": "sigmoid"},
        "You squash each score by itself, with a sigmoid, so that the weights of a query do not sum to 1.",
        _SOFT,
    ),
    # what is masked
    (
        "masks_unasked",
        "fused cross head",
        {"mask": "always"},
        "You hide later tokens, which nobody asked for here.",
        "What does this function's contract say about a mask?",
    ),
    (
        "ignores_flag",
        _MASKED,
        {"mask": "always"},
        "You hide later tokens with causal=False too.",
        "Where does your function read its last argument?",
    ),
    ("never_masks", _MASKED, {"mask": "never"}, "You never hide later tokens.", _WHICH_KEYS),
    (
        "masks_after_softmax",
        _MASKED,
        {"mask": "after"},
        "You zero later tokens after the softmax, so that the weights that stay do not sum to 1.",
        _MASK_FIRST,
    ),
    (
        "masks_after_softmax_and_renormalises",
        _MASKED,
        {"mask": "after_renormalised"},
        "You zero later tokens after the softmax and divide by what is left, which is 0/0 where a masked score dwarfs "
        "the rest.",
        _MASK_FIRST,
    ),
    (
        "masks_with_zero",
        _MASKED,
        {"mask": "zero"},
        "You set the scores of later tokens to 0, and exp(0) is 1: they still get weight.",
        _MASK_FIRST,
    ),
    (
        "masks_with_a_small_number",
        _MASKED,
        {"mask": "hundred"},
        "You mask with −100, and real scores may lie below that.",
        "Which number is below every score?",
    ),
    (
        "masks_the_past",
        _MASKED,
        {"mask": "anticausal"},
        "You hide what came before and show what comes later.",
        _WHICH_KEYS,
    ),
    (
        "masks_the_past_and_itself",
        _MASKED,
        {"mask": "strictly_anticausal"},
        "You show each token only what comes later, and the last token nothing.",
        _WHICH_KEYS,
    ),
    (
        "masks_itself",
        _MASKED,
        {"mask": "strict"},
        "You hide each token from itself too, so that the first token sees nothing.",
        _WHICH_KEYS,
    ),
    (
        "masks_itself_finitely",
        _MASKED,
        {"mask": "strict_finite"},
        "You hide each token from itself too, so that the first token sees nothing but hidden ones.",
        _WHICH_KEYS,
    ),
    ("peeks_one_ahead", _MASKED, {"mask": "peeks"}, "You let each token see one that comes after it.", _WHICH_KEYS),
    (
        "masks_values",
        _MASKED,
        {"mask": "values"},
        "You take later values out of the mixture but leave their weights as they were.",
        _MASK_FIRST,
    ),
    (
        "masks_the_same_keys_for_all",
        _MASKED,
        {"mask": "same_keys"},
        "You hide the same keys from every query; a causal mask is a triangle.",
        _WHICH_KEYS,
    ),
    # how the projections are cut
    (
        "cuts_interleaved",
        "fused head",
        {"cut": "interleaved"},
        "You take every third column; W_Q, W_K and W_V are three blocks side by side.",
        _WHICH_BLOCK,
    ),
    (
        "cuts_across_tokens",
        "fused head",
        {"cut": "three_first"},
        "You reshape to (3, …) and so cut across the tokens, not the columns.",
        _WHICH_BLOCK,
    ),
    (
        "cuts_blocks_d_wide",
        "fused",
        {"cut": "model_width"},
        "You cut blocks as wide as the model, d, not a third of W_qkv's columns.",
        _WHICH_BLOCK,
    ),
    (
        "guesses_width_from_scale",
        "fused",
        {"cut": "from_scale"},
        "You take d_k from the scale; the scale may be any number.",
        _WHICH_BLOCK,
    ),
    (
        "scales_projection",
        "fused",
        {"cut": "scaled"},
        "You scale the whole projection, so that the values are scaled as well.",
        _WHICH_SCALE,
    ),
    (
        "skips_projection",
        "fused",
        {"cut": "tokens"},
        "You use the token vectors themselves as queries, keys and values.",
        "What are the three blocks of W_qkv for?",
    ),
    (
        "transposes_weights",
        "fused",
        {"cut": "transposed"},
        "You multiply by the transpose of W_qkv, which only a square one allows.",
        "nn.Linear stores (out, in) and multiplies by the transpose itself; X @ W wants (in, out).",
    ),
    (
        "transposes_weights",
        "head",
        {"transposed": True},
        "You multiply by qkv.weight as it is, which only a square one allows.",
        "nn.Linear stores (out, in) and multiplies by the transpose itself: call self.qkv(x).",
    ),
    (
        "transposes_weights",
        "torch",
        {"transposed": True},
        "You multiply by the transpose of the weights, as F.linear does, which only square ones allow.",
        "F.linear(X, W) is X @ W.T; these weights are (in, out).",
    ),
    # what becomes of a batch, and of the output
    (
        "breaks_on_a_batch",
        "fused",
        {"batch": "reversed_axes"},
        "You treat X as one sequence: with a batch in front, something in your function no longer fits.",
        _BATCH,
    ),
    (
        "scores_across_the_batch",
        "fused",
        {"batch": "compared"},
        "You compare tokens of different sequences.",
        _BATCH,
    ),
    (
        "pools_tokens",
        "fused",
        {"finish": "pooled"},
        "You average over the tokens; each token gets an output of its own.",
        "How many rows has the output of a sequence of T tokens?",
    ),
    (
        "leaves_out_last_row",
        "fused",
        {"finish": "last_row_missing"},
        "You leave the last row of the output at zero.",
        "Where does range(T - 1) end?",
    ),
    (
        "stores_in_integers",
        "fused cross",
        {"finish": "integers"},
        "You store your output in an integer array.",
        _FRACTIONS,
    ),
    # whose sequence
    (
        "values_from_queries",
        "cross",
        {"sources": "qkq"},
        "You take the values from X_q; they belong to the sequence that is asked.",
        _WHICH_ROLE,
    ),
    (
        "keys_from_queries",
        "cross",
        {"sources": "qqk"},
        "You take the keys from X_q; they belong to the sequence that is asked.",
        _WHICH_ROLE,
    ),
    (
        "attends_to_own_sequence",
        "cross",
        {"sources": "qqq"},
        "You never use X_kv: this is self-attention.",
        _WHICH_ROLE,
    ),
    (
        "swaps_sequences",
        "cross",
        {"sources": "kqq"},
        "You let X_kv ask and X_q answer.",
        "The output has one row per token of which sequence?",
    ),
    # what is returned
    (
        "returns_weights_first",
        _SEPARATE,
        {"returns": "swapped"},
        "You return (weights, output); the output comes first.",
        "Read the last words of the docstring's first line.",
    ),
    (
        "returns_output_alone",
        _SEPARATE,
        {"returns": "output"},
        "You return the output alone; the weights are asked for as well.",
        "return output, weights",
    ),
    (
        "returns_weights_too",
        "fused head",
        {"pair": True},
        "You return the weights as well; only the output is asked for.",
        "What does the docstring say is returned?",
    ),
    # PyTorch
    (
        "leaves_out_bias",
        "head",
        {"bias": 0.0},
        "You multiply by the weight of qkv and leave its bias out.",
        "self.qkv(x) adds the bias by itself.",
    ),
    (
        "cuts_the_graph",
        "torch head",
        {"detached": True},
        "You cut the graph: autograd cannot follow your output back to the weights.",
        "Which line leaves PyTorch, or tells it not to record?",
    ),
    (
        "keeps_weight_as_it_is",
        "linear",
        {"how": "as_is"},
        "You copy W_qkv as it is; nn.Linear stores (out, in), the transpose.",
        "What shape has nn.Linear(4, 6).weight?",
    ),
    (
        "reshapes_weight",
        "linear",
        {"how": "reshaped"},
        "You reshape W_qkv where it should be transposed: the shape is right and the entries are shuffled.",
        "Compare the first row of your weight with the first column of W_qkv.",
    ),
    (
        "returns_the_array",
        "linear",
        {"how": "array"},
        "You return the matrix; an nn.Linear that holds it is asked for.",
        "Make the layer first, then copy the matrix into its weight.",
    ),
    (
        "keeps_random_bias",
        "linear",
        {"how": "random_bias"},
        "You leave the random bias that a new nn.Linear starts with.",
        "nn.Linear takes bias=False.",
    ),
]

_FUNCTIONS: list[tuple[str, str, Callable[..., Any], str, str]] = [
    (
        "remembers_earlier_input",
        "fused",
        faults.fused_remembering,
        "You answer a new input with what you kept from an earlier one of the same shape.",
        "A cache may be asked for by the numbers, not by their shape.",
    ),
    # Before those that change weights, which raise the same error on integers.
    (
        "scales_integers_in_place",
        "fused",
        faults.fused_scaling_in_place,
        "You scale integer scores in place.",
        _FRACTIONS,
    ),
    ("changes_its_weights", "fused", faults.fused_in_place, "You change W_qkv in place.", _WITHOUT_COPY),
    ("changes_its_weights", "causal", faults.separate_in_place, "You change W_Q in place.", _WITHOUT_COPY),
    ("changes_its_weights", "torch", faults.separate_in_place, "You change W_Q in place.", _WITHOUT_COPY),
    ("changes_its_weights", "cross", faults.cross_in_place, "You change W_Q in place.", _WITHOUT_COPY),
    ("works_in_float16", "fused", faults.fused_in_float16, "You calculate in float16, which is too coarse.", _HALF),
    ("works_in_float16", "causal", faults.separate_in_float16, "You calculate in float16, which is too coarse.", _HALF),
    ("works_in_float16", "cross", faults.cross_in_float16, "You calculate in float16, which is too coarse.", _HALF),
    ("works_in_float16", "torch", faults.separate_in_float16, "You calculate in float16, which is too coarse.", _HALF),
    (
        "scales_before_sdpa",
        "torch",
        faults.separate_scaled_before_sdpa,
        "You scale the queries and let F.scaled_dot_product_attention scale them again.",
        "It divides by √d_k itself unless you pass scale=1.0.",
    ),
]

_ELSEWHERE = {
    "fused": {
        "remembers_earlier_input": "fused_fresh_numbers",
        "transposes_weights": "fused_square_weights",
        "changes_its_weights": "fused_arguments",
        "stores_in_integers": "fused_number_types",
        "scales_integers_in_place": "fused_number_types",
        "overflows": "fused_large_scores",
        "shifts_by_one_maximum": "fused_large_scores",
    },
    "causal": {
        "ignores_flag": "causal_flag",
        "changes_its_weights": "causal_arguments",
        "overflows": "causal_large_scores",
        "shifts_by_one_maximum": "causal_large_scores",
        "masks_after_softmax_and_renormalises": "causal_large_scores",
        "masks_with_a_small_number": "causal_mask_levels",
    },
    "cross": {
        "changes_its_weights": "cross_arguments",
        "stores_in_integers": "cross_large_scores",
        "overflows": "cross_large_scores",
        "shifts_by_one_maximum": "cross_large_scores",
    },
    "torch": {
        "ignores_flag": "torch_flag",
        "overflows": "torch_sdpa",
        "shifts_by_one_maximum": "torch_sdpa",
        "masks_after_softmax_and_renormalises": "torch_sdpa",
        "masks_with_a_small_number": "torch_sdpa",
        "cuts_the_graph": "torch_gradients",
    },
    "head": {
        "leaves_out_bias": "head_bias",
        "cuts_the_graph": "head_gradients",
        "overflows": "head_sdpa",
        "shifts_by_one_maximum": "head_sdpa",
    },
    "linear": {"keeps_random_bias": "linear_bias"},
}
"""The check that an idea fails first, where that is not the family's check of plain values."""


def _idea(key: str, family: str, sentence: str, hint: str, **made: Any) -> Idea:
    usual = "linear_weight" if family == "linear" else f"{family}_values"
    first_fails = _ELSEWHERE[family].get(key, usual)
    return Idea(f"{family}_{key}", FAMILIES[family][0], first_fails, sentence, hint, **made)


IDEAS: tuple[Idea, ...] = (
    *(
        _idea(key, family, sentence, hint, faults=fault)
        for key, families, fault, sentence, hint in _CHOICES
        for family in families.split()
    ),
    *(_idea(key, family, sentence, hint, answer=answer) for key, family, answer, sentence, hint in _FUNCTIONS),
)
