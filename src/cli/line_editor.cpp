#include "cli/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <filesystem>

namespace lily::cli {
namespace {

constexpr int history_size = 1000;
constexpr wchar_t ctrl_c = 3;
constexpr wchar_t replacement = 0xfffd;  // for bytes that are no UTF-8

// The editor counts columns in the locale's characters; in the "C" locale it would not accept an umlaut.
void use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  for (const char* name : {"C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0) return;
    std::setlocale(LC_CTYPE, name);
  }
}

volatile std::sig_atomic_t resized = 0, resumed = 0;

// While it lives, a changed window and the return from Ctrl-Z interrupt a read, so that the line can be drawn anew.
class WakeOnRedraw {
 public:
  WakeOnRedraw() {
    Action action{};
    action.sa_handler = [](int number) { (number == SIGWINCH ? resized : resumed) = 1; };
    ::sigaction(SIGWINCH, &action, &window_);
    ::sigaction(SIGCONT, &action, &resumed_);
  }
  ~WakeOnRedraw() {
    ::sigaction(SIGWINCH, &window_, nullptr);
    ::sigaction(SIGCONT, &resumed_, nullptr);
  }
  WakeOnRedraw(const WakeOnRedraw&) = delete;
  WakeOnRedraw& operator=(const WakeOnRedraw&) = delete;

 private:
  using Action = struct sigaction;
  Action window_{}, resumed_{};
};

// Rows of the screen between the start of the prompt and the cursor.
int rows_above_cursor(EditLine* editor, int prompt_columns) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  const LineInfoW* line = ::el_wline(editor);
  int rows = 0, column = prompt_columns;
  for (const wchar_t* c = line->buffer; c != line->cursor; ++c) {
    const int width = std::max(::wcwidth(*c), 0);
    if (*c == L'\n' || column + width > size.ws_col) {
      ++rows;
      column = 0;
    }
    column += width;
  }
  return rows + column / size.ws_col;
}

void redraw(EditLine* editor, int prompt_columns) {
  if (resumed) {
    // Off and on again: the editor does not know that the shell has changed the terminal's mode in between.
    ::el_set(editor, EL_PREP_TERM, 0);
    ::el_set(editor, EL_PREP_TERM, 1);
  } else if (resized) {
    // The terminal has wrapped the line anew; the editor would draw it once more from where the cursor is now.
    const int rows = rows_above_cursor(editor, prompt_columns);
    std::fputs((rows > 0 ? "\033[" + std::to_string(rows) + "A\r\033[J" : "\r\033[J").c_str(), stdout);
    std::fflush(stdout);
    ::el_resize(editor);
  }
  if (resumed || resized) ::el_set(editor, EL_REFRESH);
  resized = 0;
  resumed = 0;
}

// Columns of a prompt whose colour codes stand between \1.
int columns_of(const std::string& prompt) {
  int columns = 0;
  bool visible = true;
  for (const unsigned char c : prompt) {
    if (c == 1) visible = !visible;
    columns += visible && c != 1 && (c & 0xc0) != 0x80;  // one a character, whatever its bytes
  }
  return columns;
}

}  // namespace

struct LineEditor::Impl {
  Impl(const std::string& file, Interrupt& interrupt_flag);
  ~Impl();

  static Impl& of(EditLine* editor);
  static char* prompt_of(EditLine* editor) { return of(editor).prompt.data(); }
  static int read_character(EditLine* editor, wchar_t* out);
  static unsigned char insert_paste(EditLine* editor, int);
  static unsigned char give_up(EditLine* editor, int);

  EditLine* editor = nullptr;
  ::History* history = nullptr;
  std::string history_file;
  Interrupt& interrupt;
  std::string prompt;
  bool interrupted = false;  // by Ctrl-C, in the current read
  std::string given_up;      // what stood in the line then
};

LineEditor::Impl::Impl(const std::string& file, Interrupt& interrupt_flag)
    : history_file(file), interrupt(interrupt_flag) {
  use_utf8_locale();
  editor = ::el_init("lily", stdin, stdout, stderr);
  ::el_set(editor, EL_CLIENTDATA, this);
  // Colour codes stand between \1 and take no columns.
  ::el_set(editor, EL_PROMPT_ESC, &prompt_of, '\1');
  ::el_set(editor, EL_EDITOR, "emacs");
  ::el_set(editor, EL_GETCFN, &read_character);
  // Wide, because the editor keeps these strings; narrow ones it would copy and never free.
  ::el_wset(editor, EL_ADDFN, L"lily-paste", L"Insert pasted text", &insert_paste);
  ::el_wset(editor, EL_ADDFN, L"lily-interrupt", L"Give the line up", &give_up);
  const char* const bindings[][2] = {{"\\e[200~", "lily-paste"},   {"^C", "lily-interrupt"},
                                     {"^R", "em-inc-search-prev"}, {"\\e[1;5C", "em-next-word"},
                                     {"\\e[1;5D", "ed-prev-word"}, {"\\e[3~", "ed-delete-next-char"}};
  for (const auto& [keys, function] : bindings) ::el_set(editor, EL_BIND, keys, function, nullptr);
  history = ::history_init();
  HistEvent event;
  ::history(history, &event, H_SETSIZE, history_size);
  ::history(history, &event, H_SETUNIQUE, 1);
  ::history(history, &event, H_LOAD, history_file.c_str());
  ::el_set(editor, EL_HIST, ::history, history);
  ::el_source(editor, nullptr);
}

LineEditor::Impl::~Impl() {
  ::history_end(history);
  ::el_end(editor);
}

LineEditor::Impl& LineEditor::Impl::of(EditLine* editor) {
  void* self = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &self);
  return *static_cast<Impl*>(self);
}

// The editor's own reader would swallow the interruption of a read by Ctrl-C; here it becomes the key that it is. It may
// also have come before the read, while the editor drew the prompt.
int LineEditor::Impl::read_character(EditLine* editor, wchar_t* out) {
  Impl& self = of(editor);
  std::mbstate_t state{};
  while (true) {
    if (self.interrupt.take()) return *out = ctrl_c, 1;
    char byte = 0;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) {
      redraw(editor, columns_of(self.prompt));
      continue;
    }
    if (count <= 0) return static_cast<int>(count);
    const size_t used = std::mbrtowc(out, &byte, 1, &state);
    if (used == static_cast<size_t>(-2)) continue;  // the character has more bytes
    if (used == static_cast<size_t>(-1)) *out = replacement;
    return 1;
  }
}

// Everything up to the closing bracket is text, line breaks too.
unsigned char LineEditor::Impl::insert_paste(EditLine* editor, int) {
  static const std::wstring end = L"\033[201~";
  std::wstring text;
  wchar_t character = 0;
  while (!text.ends_with(end)) {
    if (read_character(editor, &character) != 1) return CC_EOF;
    if (character == ctrl_c) return give_up(editor, 0);
    text += character == L'\r' ? L'\n' : character;
  }
  text.resize(text.size() - end.size());
  ::el_winsertstr(editor, text.c_str());
  return CC_REFRESH;
}

unsigned char LineEditor::Impl::give_up(EditLine* editor, int) {
  Impl& self = of(editor);
  const LineInfo* line = ::el_line(editor);
  self.interrupted = true;
  self.given_up.assign(line->buffer, line->lastchar);
  return CC_EOF;
}

LineEditor::LineEditor(const std::string& history_file, Interrupt& interrupt)
    : impl_(std::make_unique<Impl>(history_file, interrupt)) {}

LineEditor::~LineEditor() = default;

Input LineEditor::read(const std::string& prompt, std::string& line) {
  impl_->prompt = prompt;
  impl_->interrupted = false;
  std::fputs("\033[?2004h", stdout);  // the terminal brackets what is pasted
  std::fflush(stdout);
  const WakeOnRedraw wake;
  int count = 0;
  const char* text = ::el_gets(impl_->editor, &count);
  std::fputs("\033[?2004l", stdout);
  if (impl_->interrupted || text == nullptr) std::fputs(impl_->interrupted ? "^C\n" : "\n", stdout);
  std::fflush(stdout);
  if (impl_->interrupted) {
    line = impl_->given_up;
    return Input::interrupted;
  }
  line = text ? std::string(text, static_cast<size_t>(count)) : "";
  if (line.ends_with('\n')) line.pop_back();
  return text ? Input::line : Input::end;
}

void LineEditor::remember(const std::string& line) {
  HistEvent event;
  ::history(impl_->history, &event, H_ENTER, line.c_str());
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(impl_->history_file).parent_path(), ignored);
  const mode_t mask = ::umask(S_IRWXG | S_IRWXO);  // what one says to a model is private
  ::history(impl_->history, &event, H_SAVE, impl_->history_file.c_str());
  ::umask(mask);
}

}  // namespace lily::cli
