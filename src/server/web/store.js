// What the browser keeps: conversations and settings in localStorage, the API key in sessionStorage only.
//
// A conversation is {id, title, created, updated, messages}. Messages are {role: 'user', content}, {role: 'tool',
// tool_call_id, content} and {role: 'assistant', content, reasoning, tool_calls: [{id, name, arguments}], finish,
// error, usage, timings, thought_seconds}.

const chat_prefix = 'lily.chat.';
const settings_key = 'lily.settings';
const api_key_key = 'lily.api_key';

// null: the model's default, which is not sent.
export const default_settings = {
  thinking: true,
  temperature: null,
  top_p: null,
  top_k: null,
  max_tokens: null,
  presence_penalty: null,
  seed: null,
  system: '',
  tools: '',
};

function parse_chat(text) {
  try {
    const chat = JSON.parse(text);
    const valid = chat && typeof chat.id === 'string' && typeof chat.title === 'string' &&
        Array.isArray(chat.messages) &&
        chat.messages.every(
            (message) => typeof message?.content === 'string' && ['user', 'assistant', 'tool'].includes(message.role));
    return valid ? chat : null;
  } catch {
    return null;
  }
}

export function new_id() {
  return Date.now().toString(36) + Math.floor(Math.random() * 2 ** 40).toString(36);
}

// Each conversation has a key of its own, so that two tabs do not overwrite each other's.
export class Store extends EventTarget {
  constructor() {
    super();
    this.chats = new Map();
    for (const key of Object.keys(localStorage)) this.read(key);
    addEventListener('storage', (event) => {
      if (!event.key?.startsWith(chat_prefix)) return;
      this.chats.delete(event.key.slice(chat_prefix.length));
      this.read(event.key);
      this.changed();
    });
  }

  read(key) {
    if (!key.startsWith(chat_prefix)) return;
    const chat = parse_chat(localStorage.getItem(key));
    if (chat) this.chats.set(chat.id, chat);
  }

  changed() {
    this.dispatchEvent(new Event('change'));
  }

  list() {
    return [...this.chats.values()].sort((a, b) => b.updated - a.updated);
  }

  create() {
    return {id: new_id(), title: '', created: Date.now(), updated: Date.now(), messages: []};
  }

  save(chat) {
    const is_new = !this.chats.has(chat.id);
    this.chats.set(chat.id, chat);
    try {
      localStorage.setItem(chat_prefix + chat.id, JSON.stringify(chat));
    } catch {
      this.dispatchEvent(new Event('full'));
    }
    if (is_new) this.changed();
  }

  touch(chat) {
    chat.updated = Date.now();
    this.save(chat);
    this.changed();
  }

  remove(chat) {
    this.chats.delete(chat.id);
    localStorage.removeItem(chat_prefix + chat.id);
    this.changed();
  }
}

export function load_settings() {
  try {
    return {...default_settings, ...JSON.parse(localStorage.getItem(settings_key) ?? '{}')};
  } catch {
    return {...default_settings};
  }
}

export const save_settings = (settings) => localStorage.setItem(settings_key, JSON.stringify(settings));
export const load_api_key = () => sessionStorage.getItem(api_key_key) ?? '';

export function save_api_key(key) {
  if (key) sessionStorage.setItem(api_key_key, key);
  else sessionStorage.removeItem(api_key_key);
}
