// An object's YAML, line by line, with what changed in it lit up.

import { el } from './dom.js'

const valueKind = text => /^(true|false|null)$/.test(text) ? 'word' : /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? 'number' : 'string'

export class Yaml {
  constructor() {
    this.node = el('pre', { class: 'yaml', tabindex: '0', 'aria-label': 'YAML' })
    this.lines = []
  }

  text() { return this.lines.map(l => l.text).join('\n') + '\n' }

  // show brings the lines to a new state and touches only those that differ.
  show(lines, edits) {
    const now = lines.map(l => ({ ...l, text: (l.lead || '') + (l.key ? l.key + ':' + (l.value ? ' ' + l.value : '') : l.value || '') }))
    const same = (a, b) => a && b && a.text === b.text && a.path === b.path
    let head = 0
    while (same(this.lines[head], now[head])) head++
    let tail = 0
    while (tail < Math.min(this.lines.length, now.length) - head && same(this.lines.at(-1 - tail), now.at(-1 - tail))) tail++
    for (let i = this.lines.length - tail - 1; i >= head; i--) this.node.children[i].remove()
    const before = this.node.children[head] || null
    const fresh = document.createDocumentFragment()
    for (const l of now.slice(head, now.length - tail)) fresh.append(lineNode(l))
    this.node.insertBefore(fresh, before)
    this.lines = now
    this.light(edits || [])
  }

  // reveal brings a field into sight, or what is left around it.
  reveal(path) {
    for (let at = path; at; at = parent(at) === at ? '' : parent(at)) {
      const i = this.lines.findIndex(l => l.path === at)
      if (i < 0) continue
      this.node.children[i].scrollIntoView({ block: 'center' })
      this.mark(i, 'lit')
      return
    }
  }

  light(edits) {
    const lit = new Map()
    for (const edit of edits) {
      if (edit.op !== 'remove') { lit.set(edit.path, 'lit'); continue }
      lit.set(parent(edit.path), 'lit less')
    }
    if (!lit.size) return
    this.lines.forEach((line, i) => {
      let mark = lit.get(line.path)
      for (const [path, kind] of lit) if (!mark && kind === 'lit' && within(line.path, path)) mark = kind
      if (mark) this.mark(i, mark)
    })
  }

  mark(i, kind) {
    const node = this.node.children[i]
    node.className = 'line'
    void node.offsetWidth // lets the same light go on again
    node.className = 'line ' + kind
  }
}

const within = (path, root) => path.startsWith(root) && (path[root.length] === '.' || path[root.length] === '[')

function parent(path) {
  const cut = Math.max(path.lastIndexOf('.'), path.lastIndexOf('['))
  return cut > 0 ? path.slice(0, cut) : path
}

function lineNode(l) {
  return el('span', { class: 'line', title: l.path },
    l.lead, l.key && el('span', { class: 'key' }, l.key), l.key && ':' + (l.value ? ' ' : ''),
    l.value && el('span', { class: valueKind(l.value) }, l.value), '\n')
}
