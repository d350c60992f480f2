// A field that differs between two states of an object.

import { el } from './dom.js'

export function editNode(edit, reveal) {
  return el('div', { class: 'edit ' + edit.op },
    el('button', { type: 'button', class: 'path', title: 'Show it in the YAML', onclick: () => reveal(edit.path) }, edit.path),
    edit.old !== undefined && el('del', {}, edit.old),
    edit.new !== undefined && el('ins', {}, edit.new))
}
