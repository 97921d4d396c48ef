#include "text/call_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar_step.h"
#include "text/json_schema.h"
#include "text/schema_keywords.h"

namespace lily {
namespace {

constexpr int max_text_steps = 256;  // over choices and references, in search of a string

// Names and texts that tags could be confused with.
bool fits_in_tag(std::string_view name) { return !name.empty() && name.find_first_of("<>\n") == name.npos; }

const OrderedJson* member(const OrderedJson& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at == object.end() ? nullptr : &*at;
}

const OrderedJson* target_of(const OrderedJson& schema, const OrderedJson& root) {
  const OrderedJson* reference = member(schema, "$ref");
  if (!reference || !reference->is_string()) return nullptr;
  const auto& name = reference->get_ref<const std::string&>();
  try {
    const OrderedJson::json_pointer pointer(name.substr(std::min<size_t>(name.size(), 1)));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const OrderedJson::exception&) {
    return nullptr;
  }
}

bool is_json_type(const OrderedJson& type) {
  static constexpr std::string_view types[] = {"object", "array", "number", "integer", "boolean", "null"};
  return type.is_string() && std::find(std::begin(types), std::end(types), type.get<std::string>()) != std::end(types);
}

// A value may be a string, or nobody knows: then it is written as plain text, in which any JSON can stand too.
bool may_be_text(const OrderedJson& schema, const OrderedJson& root, int& steps) {
  if (steps == 0 || !schema.is_object()) return true;
  --steps;
  const auto text = [&](const OrderedJson& below) { return may_be_text(below, root, steps); };
  if (const OrderedJson* type = member(schema, "type")) {
    if (!type->is_array()) return !is_json_type(*type);
    return type->empty() || !std::all_of(type->begin(), type->end(), is_json_type);
  }
  if (const OrderedJson* target = target_of(schema, root)) return text(*target);
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    const OrderedJson* list = member(schema, keyword);
    if (list && list->is_array() && !list->empty()) return std::any_of(list->begin(), list->end(), text);
  }
  const auto is_string = [](const OrderedJson& value) { return value.is_string(); };
  if (const OrderedJson* list = member(schema, "enum")) {
    return !list->is_array() || list->empty() || std::any_of(list->begin(), list->end(), is_string);
  }
  if (const OrderedJson* value = member(schema, "const")) return value->is_string();
  return !schema.contains("properties") && !schema.contains("items");
}

class CallCompiler {
 public:
  explicit CallCompiler(Grammar& grammar) : grammar_(grammar), any_(grammar), text_(grammar.add({TextNode{}})) {}

  Result<NodeId> function(const OrderedJson& parameters, const std::string& where);

 private:
  NodeId parameter(const OrderedJson& schema, const OrderedJson& root);
  NodeId plain_words(const OrderedJson& schema);
  NodeId json(const OrderedJson& schema, const OrderedJson& root);

  Grammar& grammar_;
  AnyJson any_;
  NodeId text_;
};

// An enum of plain texts; no_node where the schema is none.
NodeId CallCompiler::plain_words(const OrderedJson& schema) {
  const OrderedJson* list = member(schema, "enum");
  const OrderedJson* value = member(schema, "const");
  const OrderedJson words = list ? *list : value ? OrderedJson::array({*value}) : OrderedJson();
  if (!words.is_array() || words.empty() || words.size() > WordList::max_words) return no_node;
  std::vector<std::string> texts;
  for (const OrderedJson& word : words) {
    if (!word.is_string() && !word.is_primitive()) return no_node;
    texts.push_back(word.is_string() ? word.get<std::string>() : word.dump());
    const bool simple = texts.back().find(parameter_end.substr(0, 2)) == std::string::npos &&
                        texts.back().size() <= WordList::max_bytes;
    if (!simple) return no_node;
  }
  return grammar_.add({WordsNode{WordList(texts)}});
}

// The schema's JSON, where it is one that can be compiled and allows something; else that of its types.
NodeId CallCompiler::json(const OrderedJson& schema, const OrderedJson& root) {
  OrderedJson alone = schema;
  for (const char* definitions : {"$defs", "definitions"}) {
    const OrderedJson* found = member(root, definitions);
    if (found && !alone.contains(definitions)) alone[definitions] = *found;
  }
  if (json_grammar(&alone)) {
    SchemaCompiler compiler(grammar_, any_);
    if (const auto node = compiler.compile(alone)) return *node;
  }
  const OrderedJson* type = member(schema, "type");
  if (!type) return any_.any;
  ChoiceNode choice;
  for (const OrderedJson& name : type->is_array() ? *type : OrderedJson::array({*type})) {
    choice.nodes.push_back(any_.of_type(name.get<std::string>()));
  }
  return grammar_.add({std::move(choice)});
}

NodeId CallCompiler::parameter(const OrderedJson& schema, const OrderedJson& root) {
  int steps = max_text_steps;
  if (!may_be_text(schema, root, steps)) return json(schema, root);
  const NodeId words = plain_words(schema);
  return words == no_node ? text_ : words;
}

Result<NodeId> CallCompiler::function(const OrderedJson& parameters, const std::string& where) {
  if (count_values(parameters) > max_schema_values) {
    return Error{where, "the schema is too large",
                 fmt::format("at most {} levels and {} values", max_schema_levels, max_schema_values), ""};
  }
  FunctionNode node;
  std::vector<std::string> tags;
  const OrderedJson* properties = member(parameters, "properties");
  const OrderedJson* required = member(parameters, "required");
  if (properties && properties->is_object()) {
    for (const auto& [name, schema] : properties->items()) {
      if (!fits_in_tag(name))
        return Error{where, "a parameter's name cannot stand in a tag", "no <, > or line end", name};
      tags.push_back(fmt::format("<parameter={}>\n", name));
      node.values.push_back(parameter(schema, parameters));
      node.required.push_back(required && required->is_array() &&
                              std::find(required->begin(), required->end(), name) != required->end());
    }
  }
  if (tags.size() > FunctionNode::max_parameters) {
    return Error{where, "too many parameters", fmt::format("at most {}", FunctionNode::max_parameters),
                 fmt::format("{}", tags.size())};
  }
  tags.push_back("</function>\n</tool_call>");
  node.tags = WordList(tags);
  return grammar_.add({std::move(node)});
}

}  // namespace

Result<Grammar> call_grammar(std::span<const OrderedJson> tools, bool parallel) {
  if (tools.empty()) return Error{"tools", "there is none to call", "", ""};
  Grammar grammar;
  CallCompiler compiler(grammar);
  CallsNode calls;
  calls.parallel = parallel;
  std::vector<std::string> openings;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools.{}.function", i);
    const OrderedJson* function = member(tools[i], "function");
    const OrderedJson* name = function ? member(*function, "name") : nullptr;
    if (!name || !name->is_string() || !fits_in_tag(name->get<std::string>())) {
      return Error{where + ".name", "no name of a function", "a string without <, > and line ends", ""};
    }
    const OrderedJson* parameters = member(*function, "parameters");
    LILY_TRY(const NodeId node, compiler.function(parameters ? *parameters : OrderedJson(), where + ".parameters"));
    calls.functions.push_back(node);
    openings.push_back(fmt::format("<tool_call>\n<function={}>\n", name->get<std::string>()));
  }
  calls.openings = WordList(openings);
  grammar.root = grammar.add({std::move(calls)});
  if (!finish_grammar(grammar)) return Error{"tools", "too many alternatives of one value", "at most 256", ""};
  return grammar;
}

}  // namespace lily
