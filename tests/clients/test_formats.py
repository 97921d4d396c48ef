"""Replies that must be JSON."""
import enum
import json
from typing import Annotated, Literal

import openai
import pydantic

from common import OFF, TOOLS, ClientTest, calls_of, gather, tokens, user


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Light(pydantic.BaseModel):
    colour: Literal["red", "green"]
    bright: bool


# Strings and lists are bounded, since the tiny model finds no end of them.
class Tower(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(max_length=12)]
    size: Size
    old: bool
    lights: Annotated[list[Light], pydantic.Field(min_length=1, max_length=2)]


class Lamp(pydantic.BaseModel):
    """The client of Anthropic sends no bounds."""
    size: Size
    light: Light


SCHEMA = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "maxLength": 20},
        "kind": {"enum": ["noun", "verb"]},
        "numbers": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        "where": {"type": "object", "properties": {"here": {"type": "boolean"}}, "required": ["here"], "additionalProperties": False},
        "none": {"type": "null"},
    },
    "required": ["word", "kind", "numbers", "where", "none"],
    "additionalProperties": False,
}


def json_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


class Formats(ClientTest):
    def check(self, value):
        self.assertEqual(list(value), SCHEMA["required"])
        self.assertIn(value["kind"], ("noun", "verb"))
        self.assertIn(len(value["numbers"]), (2, 3))
        self.assertTrue(all(type(n) is int for n in value["numbers"]))
        self.assertEqual((type(value["where"]["here"]), value["none"]), (bool, None))

    def test_schema(self):
        for thinking in (False, True):
            reply = self.chat(thinking=thinking, response_format=json_schema(SCHEMA), max_tokens=2000).choices[0]
            self.assertEqual(reply.finish_reason, "stop")
            self.check(json.loads(reply.message.content))
            self.assertEqual(bool(getattr(reply.message, "reasoning_content", None)), thinking)

    def test_schema_in_a_stream(self):
        parts = gather(self.chat(response_format=json_schema(SCHEMA), stream=True, thinking=True, max_tokens=2000))
        self.check(json.loads(parts["content"]))
        self.assertTrue(parts["reasoning"])

    def test_schema_at_any_temperature(self):
        for seed in range(4):
            self.check(json.loads(self.text(response_format=json_schema(SCHEMA), temperature=1.5, seed=seed, max_tokens=900)))

    def test_object(self):
        """The tiny model would never end a string of its own, so it may not begin one."""
        bias = {**{token: -100 for text, token in tokens().items() if '"' in text}, tokens()["}"]: 60}
        for thinking in (False, True):
            text = self.text(thinking=thinking, response_format={"type": "json_object"}, logit_bias=bias, max_tokens=100,
                             extra_body={"thinking_budget": 3} if thinking else {})
            self.assertEqual(json.loads(text), {})

    def test_text_is_nothing(self):
        self.assertEqual(self.text(response_format={"type": "text"}), self.text())

    def test_pydantic(self):
        reply = self.openai.chat.completions.parse(model="tiny", messages=user("What is a lighthouse?"), response_format=Tower,
                                                   extra_body=OFF, max_tokens=900)
        self.assertIsInstance(reply.choices[0].message.parsed, Tower)

    def test_pydantic_by_responses(self):
        reply = self.openai.responses.parse(model="tiny", input="What is a lighthouse?", text_format=Tower, max_output_tokens=900,
                                            extra_body=OFF)
        self.assertIsInstance(reply.output_parsed, Tower)

    def test_pydantic_by_messages(self):
        reply = self.anthropic.messages.parse(model="tiny", messages=user("What is a lighthouse?"), output_format=Lamp, max_tokens=900)
        self.assertIsInstance(reply.parsed_output, Lamp)

    def test_beside_tools(self):
        asked = self.chat(user("What is the weather in Paris?"), tools=TOOLS, response_format=json_schema(SCHEMA), max_tokens=2000)
        message = asked.choices[0].message
        if not calls_of(message):
            self.check(json.loads(message.content))

    def test_unsupported_keyword_is_named(self):
        for keyword, value in {"not": {"type": "null"}, "if": {}, "patternProperties": {"a": {}}, "dependentRequired": {"a": ["b"]},
                               "unevaluatedProperties": False, "propertyNames": {"maxLength": 3}}.items():
            with self.subTest(keyword):
                said = self.refused_schema({"type": "object", "properties": {"a": {"type": "string"}}, keyword: value})
                self.assertIn(keyword, said)
        self.assertIn("uniqueItems", self.refused_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}))

    def refused_schema(self, schema):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(response_format=json_schema(schema), max_tokens=50)
        self.assertTrue(caught.exception.param.startswith("response_format"), caught.exception.param)
        return str(caught.exception)

    def test_bad_formats_are_named(self):
        self.refused("response_format.type", response_format={"type": "yaml"})
        self.refused("response_format.json_schema", response_format={"type": "json_schema"})
