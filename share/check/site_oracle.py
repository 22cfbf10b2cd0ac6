"""What transformers computes at every site (docs/sites.md) of a model folder or a GGUF file, in double precision, text by text. It
comes with multihead and is run by `multihead check`:

    python site_oracle.py REQUEST.json ANSWER.safetensors

REQUEST has the folder, token ids, and the names of the modules that compute the values (multihead/folders/oracle_modules.h).
Of a GGUF file it has what multihead made of the metadata, config.json; the gguf package reads the numbers, and load_gguf() says where
they belong.
ANSWER has for each site S value.S, [rows, columns], the texts end to end; scores and weights have as many columns as the longest text
has keys, 0 behind a text's own keys. greedy is the greedy text of each, and greedy_margins how far ahead each token was.
"""

import copy
import inspect
import json
import os
import platform
import sys
from collections import OrderedDict


def missing(error, packages):
    return f"{sys.executable} has no {error.name}; install it with: {sys.executable} -m pip install {packages}"


if __name__ == "__main__":  # not in the program of another one
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
try:
    import numpy as np
    import torch
    import transformers
    from safetensors.numpy import save_file
except ImportError as error:
    sys.exit(missing(error, "torch transformers safetensors numpy"))


class Sites:
    """The values of one pass, a tensor for each text."""

    def __init__(self):
        self.values = {}

    def at(self, site, value):
        self.values.setdefault(site, []).append(value)
        return value

    def of(self, owner):
        """at() for [T, columns] and the sites whose names begin so."""
        return lambda part, value: self.at(f"{owner}.{part}", value)


def attention(module, query, key, value, attention_mask, scaling=None, softcap=None, position_bias=None, **_):
    """An attention function of transformers: query [1, H, Tq, D], key and value [1, G, Tk, D]."""
    heads, groups = query.shape[1], key.shape[1]
    module.heads_seen = heads

    def seen(part, x):
        columns = module.at(part, x[0].transpose(0, 1).flatten(1))
        return columns.unflatten(1, (x.shape[1], -1)).transpose(0, 1)

    if scaling is None:
        scaling = query.shape[-1]**-0.5
    if module.scaled_queries:
        scaling = module.scaling
        query = query / scaling
    queries, keys, values = seen("queries", query), seen("keys", key), seen("values", value)
    gates = module.at("gates", torch.ones(1, heads, dtype=query.dtype))
    bias = position_bias(queries[None], keys[None]) if callable(position_bias) else position_bias
    outputs = []
    for h in range(heads):
        g = h * groups // heads
        scores = scaling * queries[h] @ keys[g].T
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if bias is not None:
            scores = scores + bias[0, h]
        scores = module.at(f"scores.{h}", scores)
        masked = scores if attention_mask is None else scores + attention_mask[0, 0]
        weights = masked.to(module.softmax_type).softmax(-1).to(query.dtype)
        weights = module.at(f"weights.{h}", weights)
        outputs.append(weights @ values[g] * gates[0, h])
    outputs = module.at("heads", torch.cat(outputs, 1))
    return outputs.unflatten(1, (heads, -1))[None], None


def see_gpt_neo(module):
    """The same in place of GPT-Neo's method, whose masks are a buffer."""

    def method(query, key, value, *_):
        seen = module.bias[:, :, key.shape[2] - query.shape[2]:key.shape[2], :key.shape[2]]
        mask = torch.zeros(seen.shape, dtype=query.dtype).masked_fill(~seen, torch.finfo(query.dtype).min)
        output, _ = attention(module, query, key, value, mask, scaling=1.0)
        return output.transpose(1, 2), None

    module._attn = method


def see_mpnet(module):
    """The same in place of MPNet's forward(), which adds a bias of relative positions."""

    order = inspect.signature(type(module).forward)

    def forward(*args, **kwargs):
        given = order.bind(module, *args, **kwargs).arguments
        hidden_states, attention_mask = given["hidden_states"], given.get("attention_mask")
        heads = lambda x: x.unflatten(2, (module.num_attention_heads, -1)).transpose(1, 2)
        query, key, value = (heads(project(hidden_states)) for project in (module.q, module.k, module.v))
        output, _ = attention(module, query, key, value, attention_mask, scaling=query.shape[-1]**-0.5,
                              position_bias=given.get("position_bias"))
        return (module.o(output.flatten(2)),)

    module.forward = forward


def unseen(linear):
    """The same projection, of which no hook hears."""
    same = copy.copy(linear)
    same._forward_hooks = OrderedDict()
    same._forward_pre_hooks = OrderedDict()
    return same


def see_deberta(module):
    """The same in place of DeBERTa's forward(), whose queries and keys also meet vectors of distances."""

    order = inspect.signature(type(module).forward)

    def forward(*args, **kwargs):
        given = order.bind(module, *args, **kwargs).arguments
        hidden_states, distances = given["hidden_states"], given.get("rel_embeddings")
        heads = lambda x: x.unflatten(2, (module.num_attention_heads, -1)).transpose(1, 2)
        projections = (module.query_proj, module.key_proj, module.value_proj)
        query, key, value = (heads(project(hidden_states)) for project in projections)
        products = 1 + sum(name in module.pos_att_type for name in ("c2p", "p2c"))
        mask = torch.zeros(given["attention_mask"].shape, dtype=query.dtype)
        mask = mask.masked_fill(~given["attention_mask"].bool(), torch.finfo(query.dtype).min)

        def bias(queries, keys):
            met = copy.copy(module)
            met._modules = {name: unseen(linear) for name, linear in module._modules.items()}
            added = met.disentangled_attention_bias(queries[0], keys[0], given.get("relative_pos"), distances, products)
            return added[None] if torch.is_tensor(added) else torch.zeros(1, len(queries[0]), 1, 1)

        output, _ = attention(module, query, key, value, mask, scaling=(query.shape[-1] * products)**-0.5,
                              position_bias=bias if module.relative_attention else None)
        return output.flatten(2), None

    module.forward = forward


SEE_OWN = {"gpt_neo": see_gpt_neo, "mpnet": see_mpnet, "deberta": see_deberta}


def rows(x):
    """[T, columns] of one text."""
    return x[0] if x.dim() == 3 else x


def before(module, change):
    """What the module reads becomes change(what it reads), both [T, columns]."""

    def hook(_, args, kwargs):
        if not args:
            name = "hidden_states" if "hidden_states" in kwargs else next(iter(kwargs))
            return args, {**kwargs, name: change(rows(kwargs[name])).view(kwargs[name].shape)}
        return (change(rows(args[0])).view(args[0].shape), *args[1:]), kwargs

    module.register_forward_pre_hook(hook, with_kwargs=True)


def after(module, change):
    """Likewise what it gives, of a tuple the first."""

    def hook(_, __, output):
        value = output[0] if isinstance(output, tuple) else output
        value = change(rows(value)).reshape(value.shape)
        return (value, *output[1:]) if isinstance(output, tuple) else value

    module.register_forward_hook(hook)


def see(at, part):
    return lambda value: at(part, value)


def see_fused(at, module, own, projection, by_head):
    """One product makes queries, keys and values: side by side, or so for each head."""

    def split(value):
        if by_head:
            parts = value.unflatten(1, (own.config.num_attention_heads, 3, -1))
            q, k = (at(part, parts[:, :, i].flatten(1)).unflatten(1, parts.shape[1::2])
                    for i, part in enumerate(("projected_queries", "projected_keys")))
            return torch.stack([q, k, parts[:, :, 2]], 2).flatten(1)
        width = weight_of(projection).shape[0]
        q, k, v = value.split([width, (value.shape[1] - width) // 2, (value.shape[1] - width) // 2], dim=1)
        return torch.cat([at("projected_queries", q), at("projected_keys", k), v], 1)

    after(module, split)


def weight_of(projection):
    """[in, out], with what an adapter adds."""
    if hasattr(projection, "base_layer"):
        rows_of_one = torch.eye(weight_of(projection.base_layer).shape[0], dtype=torch.float64)
        return projection.forward(rows_of_one) - projection.forward(0 * rows_of_one)
    is_out_in = isinstance(projection, torch.nn.Linear)
    return projection.weight.T if is_out_in else projection.weight


def see_attention(at, layer, names, config):
    own, projection = layer.get_submodule(names["module"]), layer.get_submodule(names["output"])
    own.at, own.scaled_queries, own.heads_seen = at, names["scaled_queries"], config.num_attention_heads
    own.softmax_type = torch.float32 if names["float32_softmax"] else torch.float64
    if names["own_function"]:
        SEE_OWN[names["own_function"]](own)
    before(own, see(at, "input"))
    queries = layer.get_submodule(names["queries"])
    if names["keys"]:
        after(queries, see(at, "projected_queries"))
        after(layer.get_submodule(names["keys"]), see(at, "projected_keys"))
    else:
        see_fused(at, queries, own, projection, names["by_head"])

    def project(_, args, __):
        parts = zip(rows(args[0]).chunk(own.heads_seen, dim=1), weight_of(projection).chunk(own.heads_seen, dim=0))
        total = sum(at(f"contributions.{h}", z @ w) for h, (z, w) in enumerate(parts))
        total = at("output", total if projection.bias is None else total + projection.bias)
        return total.view(*args[0].shape[:-1], -1)

    projection.register_forward_hook(project)


class Sums:
    """Sums after a layer's attentions, which have no module: what is added to the sum before gives what is lacking to it."""

    def __init__(self, layer):
        self.sum = None
        before(layer, self.keep)

    def keep(self, value):
        self.sum = value
        return value

    def see(self, at, part, added):
        def add(value):
            before_it = self.sum
            return self.keep(at(part, before_it + value)) - before_it

        after(added, add)


def see_layer(sites, owner, layer, stack, config):
    at = sites.of(owner)
    before(layer, see(at, "input"))
    sums = Sums(layer)
    for names in stack["attentions"]:
        see_attention(sites.of(f"{owner}.{names['site']}"), layer, names, config)
        part = f"after_{names['site']}"
        if stack["norms_after_sums"]:
            after(layer.get_submodule(names["sum_norm"]), see(at, part))
        elif names["sum"]:
            after(layer.get_submodule(names["sum"]), see(at, part))
        else:
            sums.see(at, part, layer.get_submodule(names["added"]))
    second = layer.get_submodule(stack["second_linear"])
    before(second, see(at, "feed_forward.hidden"))
    after(second, see(at, "feed_forward.output"))
    after(layer, see(at, "output"))


def see_model(sites, model, modules):
    """modules: of the request."""
    base = model.base_model if model.base_model is not model else getattr(model, "model", model)
    for stack in modules["stacks"]:
        name, layers = stack["name"], base.get_submodule(stack["layers"])
        before(layers[0], see(sites.of(name), "embeddings"))
        for n, layer in enumerate(layers):
            see_layer(sites, f"{name}.{n}", layer, stack, model.config)
        parent, _, last = stack["states"].rpartition(".")
        last = getattr(base.get_submodule(parent), last) if last else None
        after(layers[-1] if last is None else last, see(sites.of(name), "states"))
    if modules["pooler"] and getattr(base, modules["pooler"], None) is not None:
        pooler = base.get_submodule(modules["pooler"])
        name = modules["stacks"][0]["name"]
        pooler.register_forward_hook(lambda _, __, pooled: sites.at(f"{name}.pooled", pooled))


def joined(parts):
    """End to end, with columns of zeros behind narrow ones."""
    widest = max(part.shape[1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, widest - part.shape[1])) for part in parts]).detach()


def register():
    transformers.AttentionInterface.register("sites", attention)
    from transformers.masking_utils import eager_mask

    transformers.AttentionMaskInterface.register("sites", eager_mask)


def class_of(request):
    if request.get("gguf"):
        return transformers.AutoModelForSeq2SeqLM if request["kind"] == "translator" else transformers.AutoModelForCausalLM
    config = transformers.AutoConfig.from_pretrained(request["folder"], local_files_only=True)
    for name in config.architectures or ():
        has_logits = not name.endswith("Model") or name.endswith("LMHeadModel")
        if hasattr(transformers, name) and (has_logits or not request["logits"]):
            return getattr(transformers, name)
    return {"causal": transformers.AutoModelForCausalLM, "translator": transformers.AutoModelForSeq2SeqLM,
            "encoder": transformers.AutoModelForMaskedLM if request["logits"] else transformers.AutoModel}[
                request["kind"]]


def in_order_of_class(architecture, name, numbers, config):
    """The numbers of a tensor as they were before llama.cpp's conversion to GGUF."""
    part = name.split(".")[-2]
    if architecture == "llama" and part in ("attn_q", "attn_k"):  # pairs of numbers that turn together became neighbours
        heads = config.num_attention_heads if part == "attn_q" else config.num_key_value_heads
        return numbers.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)
    if architecture == "gptneox" and part == "attn_qkv":  # the queries, keys and values of each head were taken apart
        return numbers.unflatten(0, (3, config.num_attention_heads, -1)).transpose(0, 1).flatten(0, 2)
    if architecture in ("gemma2", "gemma3") and part.endswith("norm"):
        return numbers - 1
    return numbers


def load_gguf(kind, request, how):
    try:
        import gguf
    except ImportError as error:
        sys.exit(missing(error, "gguf"))
    fields = dict(request["gguf"]["config"])
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = kind.from_config(config, dtype=torch.float64, attn_implementation=how).eval()
    files = [gguf.GGUFReader(file) for file in request["gguf"]["files"]]
    tensors = {tensor.name: tensor for file in files for tensor in file.tensors}

    def take(name):
        tensor = tensors.pop(name)
        return torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float64))

    architecture = files[0].fields["general.architecture"].contents()
    known = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(known, max(config.num_hidden_layers, getattr(config, "num_decoder_layers", 0)))
    for key, parameter in model.named_parameters():
        name = names.get_name(key, (".weight", ".bias"))
        if name not in tensors:
            raise ValueError(f"the file has no tensor for {key}")
        numbers = in_order_of_class(architecture, name, take(name), config)
        if numbers.shape != parameter.shape:
            raise ValueError(f"{name} has the shape {tuple(numbers.shape)}, and {key} {tuple(parameter.shape)}")
        parameter.copy_(numbers)
    if "output.weight" in tensors and request["kind"] == "translator":  # T5's class ties its layer until a file has one
        model.get_output_embeddings().weight = torch.nn.Parameter(take("output.weight"))
    if "rope_freqs.weight" in tensors:  # by how much each pair turns more slowly
        slower = take("rope_freqs.weight")
        base = files[0].fields[f"{architecture}.rope.freq_base"].contents()
        model.model.rotary_emb.inv_freq.copy_(base**(-torch.arange(len(slower)).double() / len(slower)) / slower)
    left = [name for name in tensors if not name.startswith("rope_factors_")]  # those are in the config
    if left:
        raise ValueError(f"{type(model).__name__} has no place for {left[0]}")
    return model


def load(kind, request, how):
    if request.get("gguf"):
        return load_gguf(kind, request, how)
    return kind.from_pretrained(request["folder"], dtype=torch.float64, attn_implementation=how,
                                local_files_only=True).eval()


def logits_of(output):
    return output.prediction_logits if "prediction_logits" in output else output.logits


def inputs_of(request, text):
    if request["kind"] == "translator":
        return dict(input_ids=torch.tensor([request["texts"][text]]),
                    decoder_input_ids=torch.tensor([request["targets"][text]]), use_cache=False)
    return dict(input_ids=torch.tensor([request["texts"][text]]),
                **({} if request["kind"] == "encoder" else {"use_cache": False}))


def states_of(request, output, sites):
    """What a model without hooks shows: what each layer reads, and the last states."""
    stacks = {"encoder": ["encoder"], "causal": ["decoder"], "translator": ["encoder", "decoder"]}[request["kind"]]
    for stack in stacks:
        states = output[f"{stack}_hidden_states" if request["kind"] == "translator" else "hidden_states"]
        sites.at(f"{stack}.embeddings", states[0][0])
        for n, state in enumerate(states[:-1]):
            sites.at(f"{stack}.{n}.input", state[0])
        sites.at(f"{stack}.states", states[-1][0])


def greedy(request, model, text):
    """The ids that follow, and the margin of each before the next best one, as a part of the largest logit."""
    if request["kind"] == "translator":
        source, ids = request["texts"][text], [request["start"]]
    else:
        ids = list(request["texts"][text])
    first, margins = len(ids), []
    for _ in range(request["new_tokens"][text]):
        if request["kind"] == "translator":
            given = dict(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([ids]))
        else:
            given = dict(input_ids=torch.tensor([ids]))
        logits = logits_of(model(**given, use_cache=False))[0, -1]
        logits[request["suppressed"]] = -torch.inf
        best = logits.topk(2)
        ids.append(best.indices[0].item())
        margins.append(((best.values[0] - best.values[1]) / logits[logits.isfinite()].abs().max()).item())
    return ids[first:], margins


def computed(request, kind):
    """Returns the tensors of the answer, how far values at sites are from those of the model as it is, and its class."""
    texts = range(len(request["texts"]))
    model, sites, tensors = load(kind, request, "eager"), Sites(), {}
    stack = "encoder" if request["kind"] == "encoder" else "decoder"
    plain, labels = [], []
    for text in texts:
        output = model(**inputs_of(request, text), output_hidden_states=not request["modules"])
        if not request["modules"]:
            states_of(request, output, sites)
        if request["logits"]:
            plain.append(logits_of(output)[0])
        if request["labels"]:
            of_tokens = request["labels"].endswith("token_labels")  # where ELECTRA's discriminator has a number each
            labels.append(output.logits[0].reshape(len(request["texts"][text]), -1) if of_tokens else output.logits)
    if labels:
        tensors[f"value.{request['labels']}"] = joined(labels)
    if plain:
        tensors[f"value.{stack}.logits"] = joined(plain)
    if request["new_tokens"]:
        found = [greedy(request, model, text) for text in texts]
        tensors["greedy"] = torch.tensor([i for ids, _ in found for i in ids], dtype=torch.int64)
        tensors["greedy_margins"] = torch.tensor([m for _, margins in found for m in margins], dtype=torch.float64)
    apart = 0.0
    if request["modules"]:
        register()
        try:
            model.set_attn_implementation("sites")
        except Exception:  # a class without AttentionInterface: what is inside its attention is not seen
            pass
        see_model(sites, model, request["modules"])
        for text in texts:
            output = model(**inputs_of(request, text))
            if plain:
                scale = plain[text].abs().max()
                apart = max(apart, ((logits_of(output)[0] - plain[text]).abs().max() / scale).item())
    for site, parts in sites.values.items():
        tensors[f"value.{site}"] = joined(parts)
    return tensors, apart, type(model).__name__


def answer(request_file, answer_file):
    with open(request_file, encoding="utf-8") as file:
        request = json.load(file)
    threads = torch.get_num_threads()
    torch.set_num_threads(request["threads"])
    try:
        kind = class_of(request)
        with torch.no_grad():
            tensors, apart, name = computed(request, kind)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        sys.exit(f"transformers {transformers.__version__} cannot compute {request['folder']}: "
                 f"{type(error).__name__}: {lines[-1].strip()}")
    finally:
        torch.set_num_threads(threads)
    save_file({name: (t if t.dtype == torch.int64 else t.float()).contiguous().numpy() for name, t in tensors.items()},
              answer_file,
              metadata={"python": platform.python_version(), "executable": sys.executable, "torch": torch.__version__,
                        "transformers": transformers.__version__, "numpy": np.__version__, "class": name,
                        "apart": repr(apart)})


if __name__ == "__main__":
    answer(sys.argv[1], sys.argv[2])
