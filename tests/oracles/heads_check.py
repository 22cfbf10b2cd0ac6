"""Computes what `multihead heads` says of a model once more, from the attention weights of transformers, and compares.

    venv/bin/python tests/oracles/heads_check.py TOOL FOLDER stats LINES [TARGET]
    venv/bin/python tests/oracles/heads_check.py TOOL FOLDER relations CONLLU
    venv/bin/python tests/oracles/heads_check.py TOOL FOLDER alignment LINES TARGET ALIGNMENT

FOLDER: an encoder, a causal model or a Marian translator that transformers opens. Every figure must agree to 1e-4.
"""

import collections
import json
import os
import re
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers

TOLERANCE = 1e-4
OFFSETS = range(-3, 4)


class Model:
    """The weights of every attention on one sentence, as float64: {name: [heads, queries, keys]}."""

    def __init__(self, folder):
        config = transformers.AutoConfig.from_pretrained(folder)
        self.translates = bool(getattr(config, "is_encoder_decoder", False))
        kind = transformers.AutoModelForSeq2SeqLM if self.translates else transformers.AutoModel
        self.model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        if self.translates:  # the tool's own tokenizer.json
            self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
        else:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.causal = not self.translates and "CausalLM" in (config.architectures or [""])[0]
        self.longest = config.max_position_embeddings
        self.start, self.end = getattr(config, "decoder_start_token_id", None), config.eos_token_id

    def encode(self, text):
        return self.tokenizer(text, return_offsets_mapping=True, truncation=True, max_length=self.longest)

    @torch.no_grad()
    def weights(self, ids, target=None):
        as_batch = lambda one: torch.tensor([one])
        if self.translates:
            out = self.model(input_ids=as_batch(ids), decoder_input_ids=as_batch([self.start, *target]), output_attentions=True)
            parts = {"encoder.{}.self_attention": out.encoder_attentions, "decoder.{}.self_attention": out.decoder_attentions,
                     "decoder.{}.cross_attention": out.cross_attentions}
        else:
            out = self.model(input_ids=as_batch(ids), output_attentions=True)
            parts = {f"{'decoder' if self.causal else 'encoder'}.{{}}.self_attention": out.attentions}
        return {name.format(layer): a[0].double().numpy() for name, layers in parts.items() for layer, a in enumerate(layers)}

    def source_ids(self, encoded):
        return encoded["input_ids"] + ([self.end] if self.translates and encoded["input_ids"][-1:] != [self.end] else [])


def words_in(text):
    return re.findall(r"\w+|[^\w\s]", text)


def word_of_characters(text, words):
    """For each character the number of its word, -1 for spaces."""
    of, at = [], 0
    for number, word in enumerate(words):
        while text[at].isspace():
            of.append(-1)
            at += 1
        assert text.startswith(word, at), (text, word)
        of += [number] * len(word)
        at += len(word)
    return of + [-1] * (len(text) - at)


def words_of_tokens(offsets, text, words, tokens):
    of = word_of_characters(text, words)
    found = []
    for begin, end in offsets:
        inside = [of[at] for at in range(begin, min(end, len(of))) if of[at] >= 0]
        found.append(inside[-1] if inside else -1)
    return found + [-1] * (tokens - len(found))


class Stats:
    """Sums over the queries of a corpus, of one attention."""

    def __init__(self):
        self.sums, self.counts = collections.defaultdict(float), collections.defaultdict(float)

    def add(self, key, values, count):
        self.sums[key] = self.sums[key] + values
        self.counts[key] += count

    def mean(self, key):
        return self.sums[key] / max(self.counts[key], 1)


def add_figures(stats, name, a, special, rarest, is_word, causal):
    heads, queries, keys = a.shape
    decoder = name.startswith("decoder") and "self" in name
    seen = np.minimum(np.arange(queries) + 1, keys) if decoder else np.full(queries, keys)
    entropy = -np.where(a > 0, a * np.log(np.where(a > 0, a, 1)), 0).sum(2)
    stats.add("entropy", entropy.sum(1), queries)
    many = seen > 1
    stats.add("entropy_share", (entropy[:, many] / np.log(seen[many])).sum(1), many.sum())
    i, j = np.arange(queries)[:, None], np.arange(keys)[None]
    stats.add("distance", (a * abs(i - j)).sum((1, 2)), queries)
    most = a.argmax(2)
    for offset in OFFSETS:
        at = (j - i == offset) & (j < seen[:, None])
        stats.add(f"at{offset:+d}", (a * at).sum((1, 2)), queries)
        stats.add(f"most{offset:+d}", (at.any(1) & (most - np.arange(queries) == offset)).sum(1), at.any(1).sum())
    stats.add("on_first", a[:, :, 0].sum(1), queries)
    stats.add("on_separators", a[:, :, [k for k in special if k > 0]].sum((1, 2)), queries)
    if rarest is not None and len(rarest):
        asked = np.array(is_word, bool) if queries == keys and "cross" not in name else np.ones(queries, bool)
        stats.add("on_rarest", np.isin(most[:, asked], rarest).sum(1), asked.sum())


def stats_of(model, lines, targets):
    counts = collections.Counter(word for line in lines for word in words_in(line))
    stats = collections.defaultdict(Stats)
    for number, line in enumerate(lines):
        encoded = model.encode(line)
        ids, offsets = model.source_ids(encoded), encoded["offset_mapping"]
        words = words_in(line)
        of = words_of_tokens(offsets, line, words, len(ids))
        fewest = min(counts[words[w]] for w in of if w >= 0)
        rarest = [t for t, w in enumerate(of) if w >= 0 and counts[words[w]] == fewest]
        special = [t for t in range(len(ids)) if t >= len(offsets) or offsets[t] == (0, 0)]
        target = model.encode(targets[number])["input_ids"] if targets else None
        if target and target[-1] == model.end:
            target = target[:-1]
        for name, a in model.weights(ids, target).items():
            of_source = name.startswith("encoder") or model.causal
            cross = "cross" in name
            add_figures(stats[name], name, a, special if of_source or cross else [], rarest if of_source or cross else None,
                        [w >= 0 for w in of], model.causal)
    return stats


def compare(what, found, expected):
    difference = abs(found - expected)
    if not difference <= TOLERANCE:
        sys.exit(f"heads_check: {what}: the tool has {found:.6f}, transformers {expected:.6f}")
    return difference


def tool(*arguments):
    return json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)


def philox(counter, key):
    counter, key, mask = list(counter), list(key), 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & mask, (a >> 32) ^ counter[3] ^ key[1], a & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


def random_below(seed, n):
    """The stream of mh::Random(seed): numbers below n."""
    position = 0
    threshold = (2**32 - n) % n

    def bits():
        nonlocal position
        word = philox((position // 4 & 0xFFFFFFFF, position // 4 >> 32, 0, 0), (seed, 0))[position % 4]
        position += 1
        return word

    while True:
        product = bits() * n
        while product & 0xFFFFFFFF < threshold:
            product = bits() * n
        yield product >> 32


def induction_of(model, sequences=16, length=50):
    first = [i for i in model.tokenizer("a")["input_ids"] if i in model.tokenizer.all_special_ids]
    numbers = random_below(1, min(len(model.tokenizer), model.model.config.vocab_size))
    sums = None
    for _ in range(sequences):
        ids = []
        while len(ids) < length:
            token = next(numbers)
            if model.tokenizer.decode([token], skip_special_tokens=True) != "":
                ids.append(token)
        weights = model.weights(first + ids + ids)
        begin = len(first)
        of = {name: (np.stack([a[:, i, i - 1] for i in range(begin + 1, begin + 2 * length)]).mean(0),
                     np.stack([a[:, i, i - length + 1] for i in range(begin + length, begin + 2 * length)]).mean(0))
              for name, a in weights.items()}
        sums = of if sums is None else {name: (sums[name][0] + of[name][0], sums[name][1] + of[name][1]) for name in of}
    return {name: (previous / sequences, induction / sequences) for name, (previous, induction) in sums.items()}


def check_stats(program, folder, path, target_path=None):
    model = Model(folder)
    lines = open(path, encoding="utf8").read().splitlines()
    targets = open(target_path, encoding="utf8").read().splitlines() if target_path else None
    report = tool(program, "heads", "stats", folder, "-i", path, *(["--target", target_path] if target_path else []), "--json")
    expected = stats_of(model, lines, targets)
    repeated = induction_of(model) if model.causal else None
    worst, figures = 0, 0
    for head in report["heads"]:
        name, number = head["head"].rsplit(".", 1)
        stats, h = expected[name], int(number)
        pairs = [(key, head[key], stats.mean(key)[h]) for key in
                 ("entropy", "entropy_share", "distance", "on_first", "on_separators")]
        for offset in OFFSETS:
            pairs.append((f"at {offset:+d}", head["at_offset"][f"{offset:+d}"], stats.mean(f"at{offset:+d}")[h]))
            if stats.counts[f"most{offset:+d}"]:
                pairs.append((f"most at {offset:+d}", head["most_at_offset"][f"{offset:+d}"], stats.mean(f"most{offset:+d}")[h]))
        if "on_rarest" in stats.sums:
            pairs.append(("on_rarest", head["on_rarest"], stats.mean("on_rarest")[h]))
        if repeated:
            pairs += [("previous_token", head["previous_token"], repeated[name][0][h]),
                      ("induction", head["induction"], repeated[name][1][h])]
        for what, found, right in pairs:
            worst = max(worst, compare(f"{head['head']} {what}", found, right))
            figures += 1
    print(f"stats: {figures} figures of {len(report['heads'])} heads on {len(lines)} sentences, largest difference {worst:.1e}")


def read_conllu(path):
    sentence = []
    for line in open(path, encoding="utf8"):
        columns = line.rstrip("\n").split("\t")
        if columns[0].isdigit():
            sentence.append((columns[1], int(columns[6]) - 1, columns[7]))
        elif columns == [""] and sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def merge(a, of_query, queries, of_key, keys):
    merged = np.zeros((a.shape[0], queries, keys))
    pieces = np.zeros(queries)
    for i, query in enumerate(of_query):
        if query < 0:
            continue
        pieces[query] += 1
        for j, key in enumerate(of_key):
            if key >= 0:
                merged[:, query, key] += a[:, i, j]
    return merged / np.maximum(pieces, 1)[:, None]


def edges_of(sentence, causal):
    for word, (_, head, relation) in enumerate(sentence):
        if head < 0:
            continue
        if not causal or head < word:
            yield relation, "to_head", word, head
        if not causal or head > word:
            yield relation, "to_dependent", head, word
            yield relation, "read_by_head", word, head


def check_relations(program, folder, path):
    model = Model(folder)
    found, support = collections.Counter(), collections.Counter()
    sentences = list(read_conllu(path))
    for sentence in sentences:
        words = [word for word, _, _ in sentence]
        text = " ".join(words)
        encoded = model.encode(text)
        ids = model.source_ids(encoded)
        of = words_of_tokens(encoded["offset_mapping"], text, words, len(ids))
        edges = list(edges_of(sentence, model.causal))
        support.update({(relation, direction, word) for relation, direction, word, _ in edges} and
                       collections.Counter((r, d) for r, d, _ in {(r, d, w) for r, d, w, _ in edges}))
        for name, a in model.weights(ids).items():
            merged = merge(a, of, len(words), of, len(words))
            merged[:, range(len(words)), range(len(words))] = 0
            reads = np.where(merged.max(2) > 0, merged.argmax(2), -1)
            read_by = np.where(merged.max(1) > 0, merged.argmax(1), -1)
            for h in range(a.shape[0]):
                for relation, direction, word, answer in edges:
                    if (read_by if direction == "read_by_head" else reads)[h, word] == answer:
                        found[f"{name}.{h}", relation, direction] += 1
    report = tool(program, "heads", "relations", folder, "--conllu", path, "--json")
    worst = 0
    for score in report["relations"]:
        key = score["relation"], score["direction"]
        assert score["support"] == support[key], (key, score["support"], support[key])
        right = found[(score["head"], *key)] / support[key]
        # Two words whose weights differ by rounding may change places: one word is allowed for.
        difference = abs(score["score"] - right)
        if difference > TOLERANCE + 1.01 / support[key]:
            sys.exit(f"heads_check: {score['head']} {key}: the tool has {score['score']:.4f}, transformers {right:.4f}")
        worst = max(worst, difference * support[key])
    print(f"relations: {len(report['relations'])} scores on {len(sentences)} sentences, at most {worst:.0f} words differ")


def check_alignment(program, folder, path, target_path, links_path):
    model = Model(folder)
    scores = collections.defaultdict(lambda: [0, 0, 0])  # made, right, gold
    read = lambda p: open(p, encoding="utf8").read().splitlines()
    for line, target_line, links in zip(read(path), read(target_path), read(links_path)):
        encoded, target = model.encode(line), model.encode(target_line)
        ids = model.source_ids(encoded)
        words, target_words = line.split(), target_line.split()
        gold = {tuple(map(int, link.split("-"))) for link in links.split()}
        of_key = words_of_tokens(encoded["offset_mapping"], line, words, len(ids))
        of_key = [len(words) if word < 0 else word for word in of_key]
        target_ids = target["input_ids"]
        if target_ids[-1] == model.end:
            target_ids = target_ids[:-1]
        of_target = words_of_tokens(target["offset_mapping"][: len(target_ids)], target_line, target_words, len(target_ids))
        for name, a in model.weights(ids, target_ids).items():
            if "cross" not in name:
                continue
            a = np.concatenate([a, a.mean(0, keepdims=True)])
            for query, of_query in (("predicts", [*of_target, -1]), ("reads", [-1, *of_target])):
                merged = merge(a, of_query, len(target_words), of_key, len(words) + 1)
                for h in range(a.shape[0]):
                    key = f"{name}.{h if h + 1 < a.shape[0] else 'mean'}", query
                    scores[key][2] += len(gold)
                    for t in range(len(target_words)):
                        best = merged[h, t, :-1].argmax()
                        if merged[h, t, best] <= merged[h, t, -1]:
                            continue
                        scores[key][0] += 1
                        scores[key][1] += (best, t) in gold
    report = tool(program, "heads", "alignment", folder, "-i", path, "--target", target_path, "--alignment", links_path, "--json")
    worst = 0
    for score in report["alignment"]:
        made, right, gold = scores[score["head"], score["query"]]
        for what, found, expected in (("precision", score["precision"], right / max(made, 1)), ("recall", score["recall"], right / gold),
                                      ("error rate", score["error_rate"], 1 - 2 * right / (made + gold))):
            if abs(found - expected) > TOLERANCE + 2.0 / max(made, 1):  # a word whose two best differ by rounding
                sys.exit(f"heads_check: {score['head']} {score['query']} {what}: {found:.5f}, transformers {expected:.5f}")
            worst = max(worst, abs(found - expected))
    print(f"alignment: {len(report['alignment'])} scores, largest difference {worst:.1e}")


if __name__ == "__main__":
    program, folder, what, *paths = sys.argv[1:]
    {"stats": check_stats, "relations": check_relations, "alignment": check_alignment}[what](program, folder, *paths)
