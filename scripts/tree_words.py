"""Words of dependency trees in their texts, and what stands behind each of them among the numbers of tokens."""


def trees_of(path):
    """For each sentence its text and its words: (relation, begin, end) in characters."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        words = [line.split("\t") for line in lines if line.split("\t")[0].isdigit()]
        text = next((line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")), None)
        text = text if text is not None else " ".join(word[1] for word in words)
        found, at = [], 0
        for word in words:
            begin = text.find(word[1], at)
            if begin < 0:  # a part of a multi-word token whose form is not in the text
                continue
            at = begin + len(word[1])
            found.append((word[7], begin, at))
        yield text, found


def after_words(words, places, numbers, first_is_scored):
    """For each word the number of the token after it, None where there is none. places: of all tokens, in characters; numbers: those
    of the tokens that are predicted. The last token of a word predicts the token after it. A causal text's first token is not scored,
    so token i + 1 is number i there; a translator's token i + 1 is number i + 1, and its end token the last."""
    found = []
    for _, _, end in words:
        at = next((i for i, (b, e) in enumerate(places) if e == end and e > b), None)
        index = None if at is None else at + first_is_scored
        found.append(numbers[index] if index is not None and index < len(numbers) else None)
    return found
