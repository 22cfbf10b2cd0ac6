"""Computes what `multihead heads patch` says once more, with hooks in a model of transformers in float64, and compares.

    venv/bin/python tests/oracles/patch_check.py TOOL FOLDER WHAT CLEAN CORRUPT ANSWER WRONG [--prefix TEXT] [--every N]

FOLDER: a BERT, with a head for masked words or of sentence-transformers with mean pooling; a Llama; or a Marian translator.
WHAT: heads, patterns or stream. All positions at once and each by itself; of the values every N-th. Scores and what is restored
must agree to 1e-4.
"""

import argparse
import json
import os
import subprocess

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

TOLERANCE = 1e-4


class Patched:
    """The model, run with values of the clean run put in."""

    def __init__(self, folder):
        config = transformers.AutoConfig.from_pretrained(folder)
        self.kind = config.model_type
        self.translates = bool(getattr(config, "is_encoder_decoder", False))
        names = " ".join(config.architectures or [])
        self.masks = "MaskedLM" in names or "PreTraining" in names
        kind = (transformers.AutoModelForSeq2SeqLM if self.translates else transformers.AutoModelForMaskedLM if self.masks
                else transformers.AutoModel if self.kind == "bert" else transformers.AutoModelForCausalLM)
        self.model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).double().eval()
        if self.translates:
            self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
        else:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.config = config
        self.attentions, self.layers = {}, {}  # name: (values, output, heads, heads of values); stack: layers
        if self.kind == "bert":
            self.layers["encoder"] = (self.model.bert if self.masks else self.model).encoder.layer
            for i, layer in enumerate(self.layers["encoder"]):
                own, heads = layer.attention.self, config.num_attention_heads
                self.attentions[f"encoder.{i}.self_attention"] = (own.value, layer.attention.output.dense, heads, heads)
        elif self.translates:
            for stack in ("encoder", "decoder"):
                self.layers[stack] = getattr(self.model.model, stack).layers
                for i, layer in enumerate(self.layers[stack]):
                    for name, part in (("self_attention", "self_attn"), ("cross_attention", "encoder_attn")):
                        if not hasattr(layer, part):
                            continue
                        own = getattr(layer, part)
                        self.attentions[f"{stack}.{i}.{name}"] = (own.v_proj, own.out_proj, own.num_heads, own.num_heads)
        else:
            self.layers["decoder"] = self.model.model.layers
            for i, layer in enumerate(self.layers["decoder"]):
                own = layer.self_attn
                self.attentions[f"decoder.{i}.self_attention"] = (
                    own.v_proj, own.o_proj, config.num_attention_heads, config.num_key_value_heads)

    def ids(self, text):
        ids = self.tokenizer(text)["input_ids"]
        if self.translates and ids[-1:] != [self.config.eos_token_id]:
            ids.append(self.config.eos_token_id)
        return ids

    def run(self, ids, prefix):
        """The logits of the answer's place, or the vector; and the weights of every attention."""
        batch = {"input_ids": torch.tensor([ids]), "output_attentions": True}
        if self.translates:
            target = [i for i in self.tokenizer(prefix)["input_ids"] if i != self.config.eos_token_id] if prefix else []
            batch["decoder_input_ids"] = torch.tensor([[self.config.decoder_start_token_id, *target]])
        with torch.no_grad():
            out = self.model(**batch)
        if self.translates:
            parts = {"encoder.{}.self_attention": out.encoder_attentions, "decoder.{}.self_attention": out.decoder_attentions,
                     "decoder.{}.cross_attention": out.cross_attentions}
        else:
            parts = {f"{'encoder' if self.kind == 'bert' else 'decoder'}.{{}}.self_attention": out.attentions}
        weights = {name.format(i): a[0] for name, layers in parts.items() for i, a in enumerate(layers)}
        if self.kind == "bert" and not self.masks:
            return out.last_hidden_state[0].mean(0), weights
        at = ids.index(self.tokenizer.mask_token_id) if self.masks else -1
        return out.logits[0, at].log_softmax(0), weights

    def kept(self, ids, prefix):
        """Of a run: its result, its weights, what goes into each W_O, and the streams."""
        heads, stream, hooks = {}, {}, []
        for name, (_, output, _, _) in self.attentions.items():
            hooks.append(output.register_forward_pre_hook(lambda _, args, name=name: heads.__setitem__(name, args[0].clone())))
        for stack, layers in self.layers.items():
            for i, layer in enumerate(layers):
                hooks.append(layer.register_forward_pre_hook(
                    lambda _, args, kwargs, name=f"{stack}.{i}.input": stream.__setitem__(name, stream_in(args, kwargs).clone()),
                    with_kwargs=True))
            hooks.append(layers[-1].register_forward_hook(
                lambda _, args, out, name=f"{stack}.{len(layers) - 1}.output": stream.__setitem__(name, first(out).clone())))
        result, weights = self.run(ids, prefix)
        for hook in hooks:
            hook.remove()
        return result, weights, heads, stream

    def patched(self, clean, ids, prefix, what, name, position):
        """A run with the clean value of this name put in."""
        _, weights, heads, stream = clean
        rows = slice(None) if position is None else slice(position, position + 1)
        hooks, values = [], {}
        if what == "stream":
            stack, layer, part = name.split(".")
            module = self.layers[stack][int(layer)]

            def put(x):
                x = x.clone()
                x[:, rows] = stream[name][:, rows]
                return x

            def into(_, args, kwargs):
                return ((put(args[0]), *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": put(kwargs["hidden_states"])})

            def out_of(_, args, out):
                return (put(out[0]), *out[1:]) if isinstance(out, tuple) else put(out)

            hooks.append(module.register_forward_pre_hook(into, with_kwargs=True) if part == "input"
                         else module.register_forward_hook(out_of))
        else:
            attention, head = name.rsplit(".", 1)
            value, output, count, groups = self.attentions[attention]
            head = int(head)
            hooks.append(value.register_forward_hook(lambda _, args, out: values.__setitem__("v", out)))

            def into_output(_, args):
                x = args[0].clone()
                size = x.shape[-1] // count
                columns = slice(head * size, (head + 1) * size)
                if what == "heads":
                    x[:, rows, columns] = heads[attention][:, rows, columns]
                else:
                    of = head // (count // groups)
                    x[:, rows, columns] = (weights[attention][head] @ values["v"][0, :, of * size:(of + 1) * size])[None, rows]
                return (x, *args[1:])

            hooks.append(output.register_forward_pre_hook(into_output))
        result, _ = self.run(ids, prefix)
        for hook in hooks:
            hook.remove()
        return result


def first(out):
    return out[0] if isinstance(out, tuple) else out


def stream_in(args, kwargs):
    return args[0] if args else kwargs["hidden_states"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("tool", "folder", "what", "clean", "corrupt", "answer", "wrong"):
        parser.add_argument(name)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    model = Patched(given.folder)
    clean_ids, corrupt_ids = model.ids(given.clean), model.ids(given.corrupt)
    clean, corrupt = model.kept(clean_ids, given.prefix), model.kept(corrupt_ids, given.prefix)
    largest = checked = 0
    for flags in ([], ["--by-position"]):
        command = [given.tool, "--quiet", "heads", "patch", given.folder, "--what", given.what, "--clean", given.clean, "--corrupt",
                   given.corrupt, "--answer", given.answer, "--wrong", given.wrong, "--json", *flags]
        told = json.loads(subprocess.check_output(command + (["--prefix", given.prefix] if given.prefix else [])))
        if told["measure"] == "cosine":
            answers = [model.run(model.ids(text), "")[0] for text in (given.answer, given.wrong)]
            score = lambda v: [torch.cosine_similarity(v, answer, 0).item() for answer in answers]
        else:
            score = lambda log_p: [log_p[told[which]["id"]].item() for which in ("answer", "wrong")]

        def compare(which, found, expected):
            nonlocal largest, checked
            difference = abs(found - expected)
            assert difference < TOLERANCE, (which, found, expected)
            largest, checked = max(largest, difference), checked + 1

        scores = {name: score(run[0]) for name, run in (("clean", clean), ("corrupt", corrupt))}
        for name, (answer, wrong) in scores.items():
            compare(name, told[name]["answer"], answer)
            compare(name, told[name]["wrong"], wrong)
        base, whole = (scores[name][0] - scores[name][1] for name in ("corrupt", "clean"))
        for value in told["values"][::given.every]:
            answer, wrong = score(model.patched(clean, corrupt_ids, given.prefix, given.what, value["name"], value["position"]))
            where = (value["name"], value["position"])
            compare(where, value["answer"], answer)
            compare(where, value["wrong"], wrong)
            compare(where, value["restored"], (answer - wrong - base) / (whole - base))
    print(f"{given.what}: {checked} figures agree, the largest difference is {largest:.1e}")


main()
