"""Computes two findings of docs/heads/results/layers.md again, from transformers in double precision, without multihead:

    scripts/python torch transformers tokenizers && .venv/bin/python scripts/confirm_layer.py FOLDER TEXT FIRST LAST

FOLDER: a Marian translator such as share/demo. TEXT: English lines, of which those from FIRST to LAST are translated greedily.
Prints how many words settle after each sublayer of the decoder by the lens, and which share of the difference of logits each one writes."""

import sys

import tokenizers
import torch
from transformers import MarianMTModel

RUNNERS_UP = 16
LONGEST = 4  # times the source's tokens a translation has, its end counted, as `multihead heads lens` allows
KINDS = ["self-attention", "cross-attention", "feed-forward"]


class Translator:
    def __init__(self, folder):
        self.model = MarianMTModel.from_pretrained(folder, dtype=torch.float64).eval()
        self.words = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.marked = self.words.token_to_id("▁") is not None
        self.seen = {}
        for i, layer in enumerate(self.model.model.decoder.layers):
            adds = [layer.self_attn, layer.encoder_attn, layer.fc2]
            norms = [layer.self_attn_layer_norm, layer.encoder_attn_layer_norm, layer.final_layer_norm]
            for kind, (add, norm) in enumerate(zip(adds, norms, strict=True)):
                add.register_forward_hook(self.keep("adds", 3 * i + kind))
                norm.register_forward_hook(self.keep("norms", 3 * i + kind))

    def keep(self, what, sublayer):
        def hook(module, args, out):
            out = out[0] if isinstance(out, tuple) else out
            self.seen[what, sublayer] = (module, args, out.reshape(-1, out.shape[-1]))

        return hook

    def logits(self, source, target):
        start = [self.model.config.decoder_start_token_id]
        given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([start + target])}
        return self.model(**given, use_cache=False).logits[0]

    def translate(self, text):
        source, target = self.words.encode(text).ids, []
        while True:
            scores = self.logits(source, target)[-1]
            scores[self.model.config.pad_token_id] = -torch.inf
            said = int(scores.argmax())
            if said == self.model.config.eos_token_id or len(target) + 1 >= LONGEST * len(source):
                return source, self.words.encode(self.text(target)).ids[:-1]  # without the end
            target.append(said)

    def text(self, ids):
        tokens = [self.words.id_to_token(id) for id in ids]
        return "".join(tokens).replace("▁", " ") if self.marked else " ".join(tokens)

    def read(self, stream):
        return stream @ self.model.lm_head.weight.T + self.model.final_logits_bias[0]

    def parts(self, embeddings):
        """What the embeddings, each sublayer but for its bias, and all biases left of the last stream: a sum that goes through norms of
        which the scales stay as they were."""
        count = 3 * len(self.model.model.decoder.layers)
        found, biases = {"embeddings": embeddings}, torch.zeros_like(embeddings)
        for sublayer in range(count):
            module, _, added = self.seen["adds", sublayer]
            feed_forward = sublayer % 3 == 2  # whose bias counts as its own
            bias = torch.zeros_like(added) if feed_forward else module.out_proj.bias.expand_as(added)
            found[sublayer], biases = added - bias, biases + bias
            norm, (into,), _ = self.seen["norms", sublayer]
            scale = 1 / torch.sqrt(into.reshape(added.shape).var(-1, unbiased=False, keepdim=True) + norm.eps)

            def through(part, norm=norm, scale=scale):
                return (part - part.mean(-1, keepdim=True)) * scale * norm.weight

            found = {name: through(part) for name, part in found.items()}
            biases = through(biases) + norm.bias
        return found, biases

    def is_word(self, id):
        token = self.words.id_to_token(id)
        return (token.startswith("▁") or not self.marked) and any(letter.isalpha() for letter in token)

    def first_of(self, text):
        """The first token of a text behind others, where punctuation has no space before it."""
        ids = self.words.encode(text).ids
        return ids[1] if self.words.id_to_token(ids[0]) == "▁" else ids[0]

    def runner_up(self, logits, said):
        for id in logits.topk(RUNNERS_UP).indices.tolist():
            token = self.words.id_to_token(id)
            text = token.removeprefix("▁")
            inside = self.marked and text == token and any(letter.isalnum() for letter in text)
            if id != said and text and not inside and not text.startswith("</") and self.first_of(text) == id:
                return id
        return None


def main():
    folder, text, first, last = sys.argv[1:]
    with open(text, encoding="utf-8") as file:
        lines = file.read().splitlines()[int(first) - 1 : int(last)]
    translator = Translator(folder)
    decoder = translator.model.model.decoder
    count = 3 * len(decoder.layers)
    into_first = []
    decoder.layers[0].register_forward_pre_hook(
        lambda _, args, kwargs: into_first.append((args[0] if args else kwargs["hidden_states"])[0]), with_kwargs=True)  # fmt: skip
    settled, written, rest, difference, words, off = [0] * (count + 1), [0.0] * count, 0.0, 0.0, 0, 0.0
    for line in lines:
        source, target = translator.translate(line)
        logits = translator.logits(source, target)
        streams = [into_first[-1], *(translator.seen["norms", i][2] for i in range(count))]
        best = [translator.read(stream).argmax(-1) for stream in streams]
        parts, biases = translator.parts(into_first[-1])
        for at, said in enumerate(target):
            other = translator.runner_up(logits[at], said)
            if not translator.is_word(said) or int(best[-1][at]) != said or other is None:
                continue
            words += 1
            agree = [int(one[at]) == said for one in best]
            settled[next(i for i in range(count + 1) if all(agree[i:]))] += 1
            direction = translator.model.lm_head.weight[said] - translator.model.lm_head.weight[other]
            own = float(translator.model.final_logits_bias[0, said] - translator.model.final_logits_bias[0, other])
            by_part = {name: float(part[at] @ direction) for name, part in parts.items()}
            others = by_part.pop("embeddings") + float(biases[at] @ direction) + own
            whole = float(logits[at, said] - logits[at, other])
            off = max(off, abs(sum(by_part.values()) + others - whole))
            written = [sum_ + by_part[i] for i, sum_ in enumerate(written)]
            rest, difference = rest + others, difference + whole
    print(f"{words} words of {len(lines)} translations, mean difference of logits {difference / words:.4f}; parts are off by {off:.1g} at most")
    print(f"{'after':18} {'settle':>6} {'%':>6}  {'written, %':>10}")
    print(f"{'embeddings':18} {settled[0]:6} {100 * settled[0] / words:6.1f}")
    for i in range(count):
        name = f"{i // 3} {KINDS[i % 3]}"
        print(f"{name:18} {settled[i + 1]:6} {100 * settled[i + 1] / words:6.1f}  {100 * written[i] / difference:10.2f}")
    print(f"{'embeddings, biases':32}  {100 * rest / difference:10.2f}")
    last_ones = sum(settled[count - 2 :])
    print(f"in the last layer settle {100 * last_ones / words:.1f} % of the words; it writes {100 * sum(written[-3:]) / difference:.2f} % of the difference")


if __name__ == "__main__":
    with torch.no_grad():
        main()
