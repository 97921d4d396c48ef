// No file over 800 lines, no function over 80, no large file in git.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "house/repository.h"
#include "house/source_scanner.h"

namespace lily::house {
namespace {

constexpr int soft_file_lines = 400;
constexpr int hard_file_lines = 800;
constexpr int function_lines = 80;
constexpr uintmax_t file_bytes = 1 << 20;
constexpr uintmax_t bundled_model_bytes = 24'000'000;

bool is_source(const std::string& path) {
  return is_cpp(path) || has_extension(path, {".py", ".cmake"}) || path == "lily" ||
         fs::path(path).filename() == "CMakeLists.txt";
}

std::vector<Function> functions_of(const std::string& path) {
  if (is_cpp(path)) return CppFunctions::of(read(root() / path));
  return has_extension(path, {".py"}) ? python_functions(read(root() / path)) : std::vector<Function>{};
}

TEST(Sizes, NoFileOver800Lines) {
  for (const std::string& path : files()) {
    if (!is_source(path)) continue;
    const size_t lines = split_lines(read(root() / path)).size();
    EXPECT_LE(lines, hard_file_lines) << path;
    if (lines > soft_file_lines) std::cout << path << ": " << lines << " lines, over " << soft_file_lines << "\n";
  }
}

TEST(Sizes, NoFunctionOver80Lines) {
  size_t seen = 0;
  for (const std::string& path : files()) {
    for (const Function& function : functions_of(path)) {
      ++seen;
      EXPECT_LE(function.lines, function_lines) << path << ":" << function.first_line << ": " << function.header;
    }
  }
  EXPECT_GT(seen, 50u);
}

TEST(Sizes, NoLargeFileInGit) {
  uintmax_t bundled = 0;
  for (const std::string& path : files()) {
    const uintmax_t bytes = fs::file_size(root() / path);
    if (path.starts_with("models/tiny/")) bundled += bytes;
    else EXPECT_LE(bytes, file_bytes) << path;
  }
  EXPECT_LE(bundled, bundled_model_bytes) << "models/tiny";
}

// The scanner itself, on planted cases: {source, lines of each function}.
struct Plant {
  const char* source;
  std::vector<int> lines;
};

std::vector<int> lines_of(const std::vector<Function>& functions) {
  std::vector<int> lines;
  for (const Function& function : functions) lines.push_back(function.lines);
  return lines;
}

TEST(SourceScanner, FindsCppFunctions) {
  const Plant plants[] = {
      {"int f() { return 1; }\nint g();\nint h()\n{\n}\n", {1, 3}},
      {"namespace a {\nclass B : C {\n public:\n  B() : x_{1}, y_(2) {\n  }\n private:\n  int x_{0};\n};\n}\n", {2}},
      {"template <class T>\nT f(T x) {\n  if (x) {\n  }\n  return [](int y) {\n  }(x);\n}\n", {7}},
      {"struct stat f(struct stat s) {\n}\nextern \"C\" {\nvoid g() {\n}\n}\n", {2, 2}},
      {"const char* a = \"{\"; // {\n/* { */ char b = '{';\nvoid f() {\n  s = R\"x({)x\";\n}\n", {3}},
      {"#define OPEN {\n#define TWO \\\n  {\nvoid f() {\n}\n", {2}},
      {"int a[] = {1, 2};\nauto b = f({1,\n2});\nint c{3};\nint n = 1'000;\nvoid f() {\n}\n", {2}},
      {"enum class E { a, b };\nE f() { return E::a; }\n", {1}},
      {"struct A {\n  bool operator==(const A&) const {\n    return true;\n  }\n};\n", {3}},
      {"auto f = [](int x) {\n  return x;\n};\nTEST(A, b) {\n}\n", {3, 2}},
  };
  for (const Plant& plant : plants) EXPECT_EQ(lines_of(CppFunctions::of(plant.source)), plant.lines) << plant.source;
}

TEST(SourceScanner, FindsAFunctionOfAnyLength) {
  std::string source = "void f() {\n";
  for (int i = 0; i < function_lines - 1; ++i) source += "  g();\n";
  source += "}\n";
  EXPECT_EQ(lines_of(CppFunctions::of(source)), std::vector<int>{function_lines + 1});
}

TEST(SourceScanner, FindsPythonFunctions) {
  const char* source =
      "def f(a,\n"
      "      b\n"
      ") -> int:\n"
      "  def g():\n"
      "    return 1\n"
      "\n"
      "  return g()\n"
      "\n"
      "x = 1\n"
      "class C:\n"
      "  async def h(self):\n"
      "    pass\n";
  EXPECT_EQ(lines_of(python_functions(source)), (std::vector<int>{7, 2, 2}));
}

}  // namespace
}  // namespace lily::house
