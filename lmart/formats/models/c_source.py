"""A model as one C99 file without dependencies: double lmart_score(const double *features), the same bits as lmart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lmart.data.categories import Categories
from lmart.formats.format_records import WrittenModel
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten

A_LINE = 4  # entries of a table

HEAD = """\
/* A ranking model written by lmart: {n_trees} trees, {n_leaves} leaves, {n_features} features.

   double lmart_score(const double *features)
     Returns the score of one document; higher ranks first. features[k] is the value of the feature whose number is
     lmart_feature_ids[k] and whose name is lmart_feature_names[k], for k from 0 to LMART_FEATURES - 1. A missing value
     is NAN; a feature that a row does not name is {absent}. No state, no allocation: safe for any number of threads.
   Scores are those of lmart to the last bit. Compile as C99 or C++17, with any optimisation but -ffast-math: cc -O2 -c.
   With -DLMART_MAIN it is a program: it scores lines of LMART_FEATURES numbers (or nan) from standard input. */

#include <float.h>
#include <stdint.h>
#include <stddef.h>

#ifdef __FAST_MATH__
#error "scores would change with -ffast-math"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1
#error "doubles are computed with more than 64 bits; on x86 compile with -msse2 -mfpmath=sse"
#endif

#define LMART_MODEL_VERSION 1 /* of this file's interface */
#define LMART_TREES {n_trees}
#define LMART_FEATURES {n_features}

"""

NODES = """\
/* A value <= threshold goes to the first child. A child >= 0 is a node, else ~child is a leaf. */
typedef struct {
    double threshold;
    uint32_t feature;
    int32_t children[2];
    uint32_t flags; /* 1: NAN goes to the first child; 2: the node has further bounds */
} lmart_node;

"""

BOUNDS = """\
/* Whether a value above the threshold of a node with several bounds goes to its first child: when an odd number of the
   further bounds are below it. */
static int lmart_is_in_range(int32_t node, double value)
{
    size_t low = 0, high = sizeof lmart_ranged / sizeof *lmart_ranged;
    int64_t i, first;
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (lmart_ranged[middle] <= node)
            low = middle;
        else
            high = middle;
    }
    first = lmart_bound_offsets[low];
    for (i = first; i < lmart_bound_offsets[low + 1] && value > lmart_bounds[i]; i++)
        ;
    return (i - first) % 2 == 1;
}

"""

SCORE = """\
/* One step down a tree; a leaf stays where it is. Without a branch on the value, so that nothing is mispredicted. */
static int32_t lmart_step(int32_t place, const double *features)
{{
    const lmart_node *node = &lmart_nodes[place < 0 ? 0 : place];
    const double value = features[node->feature];
    {left}
    return place < 0 ? place : node->children[!left];
}}

#define LMART_TOGETHER 8 /* trees that are walked side by side, so that the processor need not wait for one */

#ifdef __cplusplus
extern "C"
#endif
double lmart_score(const double *features);

double lmart_score(const double *features)
{{
    double sum = {base};
    size_t first;
{declared}{numbered}    for (first = 0; first < LMART_TREES; first += LMART_TOGETHER) {{
        int32_t places[LMART_TOGETHER], all = -1;
        const size_t count = LMART_TREES - first < LMART_TOGETHER ? LMART_TREES - first : LMART_TOGETHER;
        size_t i;
        for (i = 0; i < LMART_TOGETHER; i++) {{
            places[i] = i < count ? lmart_roots[first + i] : -1;
            all &= places[i];
        }}
        while (all >= 0) {{
            all = -1;
            for (i = 0; i < LMART_TOGETHER; i++) {{
                places[i] = lmart_step(places[i], features);
                all &= places[i];
            }}
        }}
        for (i = 0; i < count; i++)
            {add}
    }}
    return {result};
}}

"""

CATEGORY = """\
/* A category: its values, ascending, and the numbers that nodes compare in their place. A text is its place in the
   table lmart_texts_K of feature K; any other text is -1. */
typedef struct {
    uint32_t feature;
    size_t values;
    const double *held, *numbers;
    double unseen; /* the number of every other value */
} lmart_category;

"""

NUMBER = """\
/* Copies the features of a document, with the numbers of categories in place of their values; NAN stays. */
static void lmart_number(const double *features, double *numbered)
{
    const size_t categories = sizeof lmart_categories / sizeof *lmart_categories;
    size_t i;
    for (i = 0; i < LMART_FEATURES; i++)
        numbered[i] = features[i];
    for (i = 0; i < categories; i++) {
        const lmart_category *category = &lmart_categories[i];
        const double value = features[category->feature];
        size_t low = 0, high = category->values;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (category->held[middle] < value)
                low = middle + 1;
            else
                high = middle;
        }
        if (value == value)
            numbered[category->feature] = low < category->values && category->held[low] == value
                                              ? category->numbers[low] : category->unseen;
    }
}

"""
NUMBERED = "    double numbered[LMART_FEATURES];\n", "    lmart_number(features, numbered);\n    features = numbered;\n"

MAIN = """\
#ifdef LMART_MAIN
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    static double features[LMART_FEATURES + 1];
    char number[512];
    size_t count = 0, length = 0, line = 1;
    int c;
    do {
        c = getchar();
        if (c != EOF && !isspace(c)) {
            if (length + 1 == sizeof number) {
                fprintf(stderr, "line %lu: a number is too long\\n", (unsigned long)line);
                return 1;
            }
            number[length++] = (char)c;
            continue;
        }
        if (length > 0) {
            char *end;
            number[length] = '\\0';
            length = 0;
            if (count == LMART_FEATURES) {
                fprintf(stderr, "line %lu: more than %d numbers\\n", (unsigned long)line, LMART_FEATURES);
                return 1;
            }
            features[count++] = strtod(number, &end);
            if (*end != '\\0') {
                fprintf(stderr, "line %lu: '%s' is no number\\n", (unsigned long)line, number);
                return 1;
            }
        }
        if (c == '\\n' || (c == EOF && count > 0)) {
            if (count != LMART_FEATURES) {
                fprintf(stderr, "line %lu: %lu numbers, not %d\\n", (unsigned long)line, (unsigned long)count,
                        LMART_FEATURES);
                return 1;
            }
            printf("%.17g\\n", lmart_score(features));
            count = 0;
            line++;
        }
    } while (c != EOF);
    return fflush(stdout) == 0 ? 0 : 1;
}
#endif
"""


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the ensemble as C source, exact: float64 thresholds, sides of missing values, nodes of several bounds."""
    flat = flatten(ensemble.trees)
    n_leaves = len(flat.leaf_values)
    absent = "0.0" if ensemble.absent == "zero" else "NAN"
    parts = [HEAD.format(n_trees=flat.n_trees, n_leaves=n_leaves, n_features=ensemble.n_features, absent=absent)]
    names = ensemble.feature_names or [str(feature) for feature in ensemble.feature_ids.tolist()]
    parts += _table("extern ", "int64_t lmart_feature_ids", [f"INT64_C({f})" for f in ensemble.feature_ids.tolist()])
    parts += _table("extern ", "char *const lmart_feature_names", list(map(_quoted, names)))
    parts += _node_tables(flat)
    if ensemble.categories:
        parts += _category_tables(ensemble.categories)
    declared, numbered = NUMBERED if ensemble.categories else ("", "")
    has_bounds = len(flat.bounds) > 0
    if has_bounds:
        parts += [*_bound_tables(flat), BOUNDS]
    added = "sum + lmart_leaves[~places[i]]"
    in_float32 = ensemble.sums == "float32"
    divisor = f" / {flat.n_trees}.0" if ensemble.average and flat.n_trees else ""
    left = "const int left = (value <= node->threshold) | ((value != value) & (int)(node->flags & 1));"
    if has_bounds:
        left = left.removeprefix("const ") + (
            "\n    if ((node->flags & 2) && value > node->threshold)\n        left = lmart_is_in_range(place, value);"
        )
    parts.append(
        SCORE.format(
            declared=declared,
            numbered=numbered,
            base=float(ensemble.base_score).hex(),
            left=left,
            add=f"sum = (double)(float)({added});" if in_float32 else f"sum = {added};",
            result=f"sum{divisor}",
        )
    )
    parts.append(MAIN)
    return WrittenModel("".join(parts).encode("ascii"), ())


def _category_tables(categories: Sequence[Categories]) -> Iterator[str]:
    """Return the tables of the values of categories, ascending, and of their numbers."""
    entries = []
    for k, of_feature in enumerate(categories):
        held, numbers = of_feature.by_value
        if of_feature.of_texts:
            texts = [_quoted(str(value)) for value in of_feature.values]
            yield from _table("extern ", f"char *const lmart_texts_{of_feature.column}", texts)
        yield from _table("static ", f"double lmart_held_{k}", [f"{value:.1f}" for value in held.tolist()])
        yield from _table("static ", f"double lmart_numbers_{k}", [f"{number:.1f}" for number in numbers.tolist()])
        unseen = f"{of_feature.unseen_number:.1f}"
        entries.append(f"{{{of_feature.column}, {len(held)}, lmart_held_{k}, lmart_numbers_{k}, {unseen}}}")
    yield CATEGORY
    yield from _table("static ", "lmart_category lmart_categories", entries)
    yield NUMBER


def _table(storage: str, declared: str, entries: Sequence[str]) -> Iterator[str]:
    """Return the lines of an array; an empty one has an entry that is never used, as C wants it."""
    if storage == "extern ":  # C++ would keep a constant to the file
        yield f'#ifdef __cplusplus\nextern "C" const {declared}[];\n#endif\n'
    yield f"{'' if storage == 'extern ' else storage}const {declared}[] = {{\n"
    entries = entries or ["0"]
    for start in range(0, len(entries), A_LINE):
        yield "    " + ", ".join(entries[start : start + A_LINE]) + ",\n"
    yield "};\n\n"


def _quoted(name: str) -> str:
    """Return a text as a C string literal in ASCII: no name can end it, make a trigraph or run into digits."""
    shown = [
        chr(byte) if (chr(byte).isalnum() and byte < 128) or chr(byte) in " _-.,:;@#+()[]" else f"\\{byte:03o}"
        for byte in name.encode("utf-8", "surrogatepass")
    ]
    return '"' + "".join(shown) + '"'


def _node_tables(flat: FlatTrees) -> Iterator[str]:
    """Return the tables of nodes, roots and leaf values; children count over all trees."""
    owner = flat.tree_of_node
    node_start, leaf_start = flat.node_offsets[owner], flat.leaf_offsets[owner]
    left, right = (
        np.where(child >= 0, child + node_start, child - leaf_start).tolist() for child in (flat.left, flat.right)
    )
    sizes = np.diff(flat.node_offsets)
    roots = np.where(sizes > 0, flat.node_offsets[:-1], ~flat.leaf_offsets[:-1]).tolist()
    flags = (flat.missing_left + 2 * (np.diff(flat.bound_offsets) > 0)).tolist()
    entries = [
        f"{{{threshold.hex()}, {column}, {{{a}, {b}}}, {flag}}}"
        for threshold, column, a, b, flag in zip(
            flat.thresholds.tolist(), flat.split_columns.tolist(), left, right, flags, strict=True
        )
    ]
    yield NODES
    yield from _table("static ", "lmart_node lmart_nodes", entries or ["{0.0, 0, {0, 0}, 0}"])
    yield from _table("static ", "int32_t lmart_roots", list(map(str, roots)))
    yield from _table("static ", "double lmart_leaves", [value.hex() for value in flat.leaf_values.tolist()])


def _bound_tables(flat: FlatTrees) -> Iterator[str]:
    """Return the tables of the nodes with several bounds and of these."""
    ranged = np.flatnonzero(np.diff(flat.bound_offsets))
    offsets = [*flat.bound_offsets[ranged].tolist(), len(flat.bounds)]
    yield from _table("static ", "int32_t lmart_ranged", list(map(str, ranged.tolist())))
    yield from _table("static ", "int64_t lmart_bound_offsets", list(map(str, offsets)))
    yield from _table("static ", "double lmart_bounds", [bound.hex() for bound in flat.bounds.tolist()])
