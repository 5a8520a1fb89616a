"""Wrong but plausible attention_shapes: above each its misconception and where it was seen; NAMED gives its id.

An empty name marks an idea that is not in the catalogue: it loses marks, and the message says what differs.
"""

from __future__ import annotations

NAMED = {
    "output_has_d_k": "gives_the_output_the_key_width",
    "scores_transposed": "transposes_the_scores",
    "only_self_attention": "thinks_of_self_attention_only",
    "linear_layout": "stores_weights_as_linear_does",
    "no_batch": "forgets_the_batch",
    "weights_depend_on_T": "ties_weights_to_the_length",
    "weights_one_per_query": "leaves_one_weight_per_query",
    "output_width_d": "projects_the_output_back",
    "two_ideas": "gives_the_output_the_key_width",
    "in_order_and_wrong": "stores_weights_as_linear_does",
    "heads_squeezed_in": "",
    "forgets_an_entry": "",
    "text_for_shapes": "",
    "one_shape_for_all": "takes_inputs_for_projected",
}


def _table(B, T_q, T_k, d, d_k, d_v, **change):
    table = {
        **{"X_q": (B, T_q, d), "X_kv": (B, T_k, d), "W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v)},
        **{"Q": (B, T_q, d_k), "K": (B, T_k, d_k), "V": (B, T_k, d_v)},
        **{"scores": (B, T_q, T_k), "weights": (B, T_q, T_k), "output": (B, T_q, d_v)},
    }
    return table | change


# WS02, the output has the key width | jadore801120/attention-is-all-you-need-pytorch#153
def output_has_d_k(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_k, d, d_k, d_v, output=(B, T_q, d_k))


# WS04, keys as rows of the scores | keyvank/femtoGPT#30
def scores_transposed(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_k, d, d_k, d_v, scores=(B, T_k, T_q), weights=(B, T_k, T_q))


# WS05, T_q everywhere | harvard-edge/cs249r_book#1875; huggingface/transformers#48356
def only_self_attention(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_q, d, d_k, d_v)


# WS06, (out, in) as in nn.Linear | skyzh/tiny-llm#41
def linear_layout(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_k, d, d_k, d_v, W_Q=(d_k, d), W_K=(d_k, d), W_V=(d_v, d))


# WS08, one sequence instead of a batch | flat pictures of small examples
def no_batch(B, T_q, T_k, d, d_k, d_v):
    return {name: shape[1:] if len(shape) == 3 else shape for name, shape in _table(B, T_q, T_k, d, d_k, d_v).items()}


# WS09, parameters with a row per token | a common slip in interviews
def weights_depend_on_T(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_k, d, d_k, d_v, W_Q=(T_q, d_k), W_K=(T_k, d_k), W_V=(T_k, d_v))


# WS11, the softmax removes an axis | "softmax turns scores into one probability"
def weights_one_per_query(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_k, d, d_k, d_v, weights=(B, T_q))


# WS14, an output projection that was not asked for | it belongs to a whole layer
def output_width_d(B, T_q, T_k, d, d_k, d_v):
    return _table(B, T_q, T_k, d, d_k, d_v, output=(B, T_q, d))


# Two ideas at once, in a list: each is named at its own check | ours
def two_ideas(B, T_q, T_k, d, d_k, d_v):
    table = _table(B, T_q, T_k, d, d_k, d_v, output=(B, T_q, d_k), scores=(B, T_k, T_q), weights=(B, T_k, T_q))
    return [list(shape) for shape in table.values()]


# A named idea in a tuple without names | ours
def in_order_and_wrong(B, T_q, T_k, d, d_k, d_v):
    return tuple(linear_layout(B, T_q, T_k, d, d_k, d_v).values())


# An axis for one head, as scaled_dot_product_attention has it | ours
def heads_squeezed_in(B, T_q, T_k, d, d_k, d_v):
    table = _table(B, T_q, T_k, d, d_k, d_v).items()
    return {name: (B, 1, *shape[1:]) if len(shape) == 3 else shape for name, shape in table}


# An entry is missing; the checks that do not judge it are passed | ours
def forgets_an_entry(B, T_q, T_k, d, d_k, d_v):
    table = _table(B, T_q, T_k, d, d_k, d_v)
    del table["weights"]
    return table


# Symbols as text instead of the sizes | ours
def text_for_shapes(B, T_q, T_k, d, d_k, d_v):
    return dict.fromkeys(_table(B, T_q, T_k, d, d_k, d_v), "(B, T, d)")


# The shape of X for everything | ours
def one_shape_for_all(B, T_q, T_k, d, d_k, d_v):
    return dict.fromkeys(_table(B, T_q, T_k, d, d_k, d_v), (B, T_q, d))
