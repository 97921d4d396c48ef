// JSON schemas -> nodes of a grammar. token_constraint.h says which schemas, and what they mean here.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/chat.h"
#include "text/grammar.h"

namespace lily {

// The grammar of one JSON value: of any object (no schema), or of what `schema` allows.
Result<Grammar> json_grammar(const OrderedJson* schema);

// Compiles one schema after the other into a grammar. Schemas are visited from a list, not by recursion, so that neither
// deep schemas nor long chains of references can exhaust the call stack.
class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, const AnyJson& any) : grammar_(grammar), any_(any) {}

  // `schema` is what $ref is resolved in. The node can be used after finish_grammar(), which may still find that it allows
  // nothing. Nodes of a schema with an error stay in the grammar and do no harm.
  Result<NodeId> compile(const OrderedJson& schema);

 private:
  struct Open {
    const OrderedJson* schema;
    std::string path;
    NodeId node;  // a ChoiceNode
  };

  NodeId node_of(const OrderedJson& schema, const std::string& path);
  Result<void> visit(const Open& open);
  Result<void> check_keywords(const OrderedJson& schema, const std::string& path) const;
  Result<const OrderedJson*> resolve(const OrderedJson& reference, const std::string& path) const;
  Result<const OrderedJson*> follow(const OrderedJson* schema, const std::string& path) const;
  Result<const OrderedJson*> merge(const OrderedJson& a, const OrderedJson& b, const std::string& path);
  Result<std::vector<NodeId>> combined(const OrderedJson& schema, const std::string& path);
  Result<std::vector<NodeId>> any_of(const OrderedJson& schema, const char* keyword, const std::string& path);
  Result<NodeId> all_of(const OrderedJson& schema, const std::string& path);
  Result<NodeId> words(const OrderedJson& schema, const std::string& path);
  Result<std::vector<NodeId>> typed(const OrderedJson& schema, const std::string& path);
  Result<NodeId> of_type(const std::string& type, const OrderedJson& schema, const std::string& path);
  Result<NodeId> object(const OrderedJson& schema, const std::string& path);
  Result<NodeId> array(const OrderedJson& schema, const std::string& path);

  Grammar& grammar_;
  const AnyJson& any_;
  const OrderedJson* root_ = nullptr;
  std::vector<Open> open_;
  std::unordered_map<const OrderedJson*, NodeId> nodes_;
  std::deque<OrderedJson> merged_;  // schemas made here; nodes_ knows them by address
  size_t merged_values_ = 0;
};

}  // namespace lily
