// A conversation as a file.
import {h} from './dom.js';

function fenced(text, language) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

function message_markdown(message) {
  if (message.role === 'user') return `## You\n\n${message.content}`;
  if (message.role === 'tool') return `## Tool result\n\n${fenced(message.content, '')}`;
  const parts = ['## Lily'];
  if (message.reasoning)
    parts.push(`<details><summary>Thinking</summary>\n\n${message.reasoning.trim()}\n\n</details>`);
  if (message.content.trim()) parts.push(message.content.trim());
  for (const call of message.tool_calls) parts.push(`Calls \`${call.name}\`:\n\n${fenced(call.arguments, 'json')}`);
  return parts.join('\n\n');
}

export function chat_markdown(chat) {
  return `# ${chat.title}\n\n${chat.messages.map(message_markdown).join('\n\n')}\n`;
}

export function chat_json(chat) {
  return `${JSON.stringify(chat, null, 2)}\n`;
}

export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  h('a', {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export function file_name(chat, extension) {
  const name = chat.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 40);
  return `${name || 'chat'}.${extension}`;
}
