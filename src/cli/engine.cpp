#include "cli/engine.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/mapped_file.h"
#include "cli/model_dir.h"
#include "cli/progress.h"
#include "model/accounting.h"
#include "model/tensor_names.h"
#include "runtime/generation_config.h"

namespace lily::cli {
namespace {

namespace fs = std::filesystem;

// "loading NAME" on the terminal for as long as it takes.
class LoadingLine {
 public:
  explicit LoadingLine(const std::string& name) : shown_(::isatty(STDERR_FILENO) == 1) {
    if (shown_) std::fprintf(stderr, "loading %s ...", name.c_str());
  }
  ~LoadingLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  LoadingLine(const LoadingLine&) = delete;
  LoadingLine& operator=(const LoadingLine&) = delete;

 private:
  bool shown_;
};

std::string name_of_directory(const std::string& directory) {
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(directory, failed);
  return failed || path.filename().empty() ? directory : path.filename().string();
}

int64_t count_parameters(const Checkpoint& checkpoint) {
  int64_t count = 0;
  for (const auto& [part, size] : sizes_by_part(checkpoint.tensors(), checkpoint.config())) {
    if (!is_skipped(part)) count += size.parameters;
  }
  return count;
}

}  // namespace

Result<void> check_chat(const Engine& engine) {
  const std::string& directory = engine.checkpoint->directory();
  for (const char* marker : {"<|im_start|>", "<|im_end|>", "<think>", "</think>"}) {
    if (engine.tokenizer->added_token(marker)) continue;
    return Error{.where = directory + "/tokenizer.json",
                 .what = "not a chat model of this family",
                 .expected = std::string("the added token ") + marker,
                 .got = "none"};
  }
  const Result<std::string> own = read_file(directory + "/chat_template.jinja");
  if (own && own->find("<|im_start|>") == own->npos) {
    std::fprintf(stderr, "lily: %s/chat_template.jinja: not a Qwen template; Qwen3.6's is used\n", directory.c_str());
  }
  return {};
}

Result<Engine> load_engine(const ModelOptions& options, NeedTokenizer need) {
  LILY_TRY(const std::string directory, find_model(options.model));
  Engine engine;
  engine.name = name_of_directory(directory);
  const LoadingLine line(engine.name);
  const WeightStorage storage = options.no_mmap ? WeightStorage::memory : WeightStorage::mapped;
  LILY_TRY(Checkpoint checkpoint, Checkpoint::open(directory, storage));
  engine.checkpoint = std::make_shared<const Checkpoint>(std::move(checkpoint));
  engine.parameters = count_parameters(*engine.checkpoint);
  LILY_TRY(engine.sampling, load_generation_config(directory));
  const std::string tokenizer_path = directory + "/tokenizer.json";
  if (need == NeedTokenizer::yes || (need == NeedTokenizer::if_present && fs::exists(tokenizer_path))) {
    LILY_TRY(Tokenizer tokenizer, Tokenizer::load(tokenizer_path));
    engine.tokenizer = std::move(tokenizer);
  }
  std::optional<ProgressBar> bar;  // where the weights go to a device, which takes a while
  BackendOptions backend{.threads = options.threads, .exact = options.exact, .isa = options.isa};
  backend.on_upload = [&](size_t done, size_t total) {
    if (!bar) bar.emplace("loading " + engine.name, static_cast<int64_t>(total), ProgressUnit::bytes);
    bar->update(static_cast<int64_t>(done));
  };
  LILY_TRY(engine.backend, Backend::load(options.backend, engine.checkpoint, backend));
  engine.chunk = options.chunk > 0 ? options.chunk : engine.backend->chunk();
  return engine;
}

}  // namespace lily::cli
