// Elements without markup strings: text from a model only ever becomes a text node or the value of an attribute set
// here.

const svg_space = 'http://www.w3.org/2000/svg';

// Paths on a 24 x 24 grid, drawn with a stroke.
const icons = {
  menu: 'M4 7h16M4 12h16M4 17h10',
  plus: 'M12 5v14M5 12h14',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2' +
      'M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M8 8h8v8H8z',
  down: 'M12 5v14M6 13l6 6 6-6',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  retry: 'M19 12a7 7 0 1 1-2-4.9M19 4v4h-4',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  close: 'M6 6l12 12M18 6L6 18',
  help: 'M9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.5-1.1 1-1.1 1.8M12 17h.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z',
  tool: 'M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3z',
  think: 'M9 18h6M10 21h4M8.5 15a6 6 0 1 1 7 0v0h-7z',
  chevron: 'M9 6l6 6-6 6',
};

export function icon(name) {
  const svg = document.createElementNS(svg_space, 'svg');
  for (const [key, value] of Object.entries({viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true'}))
    svg.setAttribute(key, value);
  const path = document.createElementNS(svg_space, 'path');
  path.setAttribute('d', icons[name]);
  svg.append(path);
  return svg;
}

// h('a', { class: 'x', href: url, on: { click } }, 'text', node). A property that is null, undefined or false is left
// out.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? '' : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// A button that shows only an icon.
export function icon_button(name, label, click, properties = {}) {
  return h(
      'button', {type: 'button', class: 'icon-button', 'aria-label': label, title: label, on: {click}, ...properties},
      icon(name));
}

export const find = (id) => document.getElementById(id);

// Outside of secure contexts (another machine's page over plain HTTP) there is no navigator.clipboard.
export async function copy_text(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h('textarea', {class: 'hidden-label', 'aria-hidden': 'true'});
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('the browser refused to copy');
}

// Copies and says so on the button for a moment.
export async function copy_from(button, text) {
  try {
    await copy_text(text);
  } catch {
    return announce('Copying failed.');
  }
  const old = button.firstChild;
  const done = icon('check');
  if (button.querySelector('.copied-mark')) return;
  done.classList.add('copied-mark');
  old.replaceWith(done);
  announce('Copied.');
  setTimeout(() => done.replaceWith(old), 1400);
}

// Says something to screen readers.
export function announce(text) {
  find('status').textContent = text;
}

let toast_timer = 0;

export function hide_toast() {
  find('toast').hidden = true;
  find('toast').replaceChildren();
}

// A line at the bottom, with an action such as Undo. One at a time.
export function toast(text, action_label, action) {
  const box = find('toast');
  clearTimeout(toast_timer);
  box.replaceChildren(h('span', {}, text));
  const act = () => {
    hide_toast();
    action();
  };
  if (action) box.append(h('button', {type: 'button', class: 'link-button', on: {click: act}}, action_label));
  box.append(icon_button('close', 'Dismiss', hide_toast));
  box.hidden = false;
  // Whoever is on the toast with pointer or keyboard is not hurried.
  const expire = () => {
    toast_timer = setTimeout(() => (box.matches(':hover, :focus-within') ? expire() : hide_toast()), 9000);
  };
  expire();
}
