"""Finds the head of MiniLM that goes from verbs to their objects, mutes it, and draws what that changes.

python examples/verb_to_object.py minilm en_ewt-ud-dev.conllu change.png
"""

import sys

import matplotlib.pyplot as plt

import multihead as mh

model = mh.load(sys.argv[1])
head = mh.heads.relations(model, trees=sys.argv[2], relation="obj").where(direction="to_dependent")[0]["head"]
texts = ["The chef cooked the meal.", "The chef burned the meal.", "The chef slept well.", "It rained in the morning."]
before = model.embed(texts)
with model.edit(mute=head):
    change = 1 - (model.embed(texts) * before).sum(1)
plt.barh(texts, change)
plt.xlabel(f"1 - cosine of each vector to itself without {head}")
plt.savefig(sys.argv[3], bbox_inches="tight")
print(head)
