"""Renders conversations with the model's chat template and turns them into token ids and loss weights."""
import json
import os

from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = os.path.join(HERE, "..", "..", "models", "tiny", "chat_template.jinja")
OTHER_WEIGHT = 0.05  # loss weight of what the user, the system and the tools say


class Renderer:
    def __init__(self, path=TEMPLATE):
        env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        env.filters["tojson"] = lambda x, **kw: json.dumps(x, ensure_ascii=False, **kw)
        env.globals["raise_exception"] = self.fail
        with open(path, encoding="utf-8") as f:
            self.template = env.from_string(f.read())

    @staticmethod
    def fail(message):
        raise ValueError(message)

    def text(self, messages, tools=None, preserve=False, prompt=False, thinking=True):
        return self.template.render(messages=messages, tools=tools, preserve_thinking=preserve,
                                    add_generation_prompt=prompt, enable_thinking=thinking)


class Encoder:
    """Text to ids, and the loss weight of every token as a target."""

    def __init__(self, tokenizer):
        self.tok = tokenizer
        ident = tokenizer.token_to_id
        self.start, self.end, self.eos = ident("<|im_start|>"), ident("<|im_end|>"), ident("<|endoftext|>")
        self.think, self.unthink = ident("<think>"), ident("</think>")
        self.role = tokenizer.encode("assistant\n").ids
        self.newline, self.blank = tokenizer.encode("\n").ids, tokenizer.encode("\n\n").ids

    def document(self, text):
        """Token ids ending in <|endoftext|>, and weights: 1 for what the assistant writes itself."""
        ids = self.tok.encode(text).ids + [self.eos]
        weight = [OTHER_WEIGHT] * len(ids)
        i = 0
        while i < len(ids):
            if ids[i] == self.start and ids[i + 1:i + 1 + len(self.role)] == self.role:
                j = i + 1 + len(self.role)
                if ids[j] == self.think:  # the prompt holds "<think>\n", or the whole empty block
                    empty = [self.think] + self.blank + [self.unthink] + self.blank
                    j += len(empty) if ids[j:j + len(empty)] == empty else 1 + len(self.newline)
                weight[i:j] = [0.0] * (j - i)
                while ids[j] != self.end:
                    weight[j] = 1.0
                    j += 1
                weight[j] = 1.0
                i = j
            i += 1
        return ids, weight
