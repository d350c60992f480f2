// A table of any length of which only the visible rows exist.
//
// Rows are asked for in blocks by their place. Blocks that were seen stay until
// newer ones arrive, so that scrolling back and live updates do not flicker.

import { el, fill, setText } from './dom.js'
import { count, since, tone } from './format.js'

const block = 100
const spare = 8
// The server keeps an order of rows for a moment; see "behind" in its answers.
const behindWait = 300
// Browsers draw no element that is much higher than this.
const maxHeight = 12_000_000

export class Grid {
  // load(offset, limit, signal) gives rows; open(row) is called for Enter and
  // clicks; sort(path) for headings.
  constructor({ load, open, sort, label }) {
    Object.assign(this, { load, open, sort })
    this.head = el('div', { class: 'head', role: 'row', 'aria-rowindex': '1' })
    this.body = el('div', { class: 'rows', role: 'rowgroup' })
    this.scroller = el('div', { class: 'scroller' }, this.head, this.body)
    this.node = el('div', { class: 'grid', role: 'grid', tabindex: '0', 'aria-label': label }, this.scroller)
    this.pool = []
    this.generation = 0
    // moment is the time that the rows are of, undefined for now.
    this.moment = undefined
    this.reset()
    this.scroller.addEventListener('scroll', () => this.schedule(), { passive: true })
    new ResizeObserver(() => this.schedule()).observe(this.scroller)
    this.ages = setInterval(() => this.drawAges(), 1000)
  }

  close() {
    clearInterval(this.ages)
    clearTimeout(this.timer)
    clearTimeout(this.again)
    this.request?.abort()
  }

  // reset forgets what is shown: it is about something else.
  reset() {
    this.request?.abort()
    this.request = null
    this.blocks = new Map()
    this.stale = new Set()
    this.total = 0
    this.selected = 0
    // opening says that the selected row is opened as soon as it arrives.
    this.opening = false
    this.columns = null
    this.scroller.scrollTop = 0
  }

  // refresh asks again for what can be seen; the rest is asked when it is.
  refresh() {
    this.generation++
    for (const b of this.blocks.keys()) this.stale.add(b)
    this.want()
  }

  // revisit shows another moment: rows stay until those of then arrive.
  revisit(moment) {
    this.moment = moment
    this.request?.abort()
    this.request = null
    this.node.setAttribute('aria-busy', 'true')
    this.refresh()
  }

  // clear shows nothing: what there was is not what was asked for.
  clear() {
    this.blocks.clear()
    this.stale.clear()
    this.total = 0
    this.node.removeAttribute('aria-busy')
    this.draw()
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.node).getPropertyValue('--row')) || 28
  }

  visible() {
    const h = this.rowHeight
    const top = Math.max(0, this.scroller.scrollTop)
    const first = Math.floor(top / h)
    return { h, first, last: Math.ceil((top + this.scroller.clientHeight - this.head.offsetHeight) / h) }
  }

  schedule() {
    if (this.frame) return
    this.frame = requestAnimationFrame(() => {
      this.frame = 0
      this.draw()
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.want(), 40)
    })
  }

  // want asks for the first block in sight that is missing or old. One request
  // is under way at a time; one for what is out of sight is given up.
  async want() {
    const { first, last } = this.visible()
    const from = Math.floor(Math.max(0, first - spare) / block)
    const to = Math.floor(Math.max(0, Math.min(last + spare, this.total - 1)) / block)
    let next = -1
    for (let b = from; b <= to && next < 0; b++) if (!this.blocks.has(b)) next = b
    for (let b = from; b <= to && next < 0; b++) if (this.stale.has(b)) next = b
    if (next < 0) return
    if (this.request) {
      if (this.request.block >= from && this.request.block <= to) return
      this.request.abort()
    }
    const request = new AbortController()
    request.block = next
    request.generation = this.generation
    this.request = request
    let found
    try {
      found = await this.load(next * block, block, request.signal)
    } finally {
      if (this.request === request) this.request = null
    }
    if (!found && !request.signal.aborted) this.opening = false
    if (!found || request.signal.aborted) return
    // What was asked before the last refresh may be older than it.
    this.take(next, found, request.generation === this.generation)
    if (found.behind) {
      clearTimeout(this.again)
      this.again = setTimeout(() => this.refresh(), behindWait)
    }
    this.want()
  }

  take(b, found, current) {
    this.node.removeAttribute('aria-busy')
    this.total = found.total
    this.setColumns(found.columns)
    const before = this.blocks.get(b)
    const now = Date.now()
    found.rows.forEach((row, i) => {
      const old = before?.[i]
      if (!old || old.key !== row.key) return
      row.changed = (old.cells || []).some((cell, j) => cell !== row.cells?.[j]) ? now : old.changed
    })
    this.blocks.set(b, found.rows)
    if (current) this.stale.delete(b)
    else this.stale.add(b)
    for (const other of this.blocks.keys()) if (other * block >= this.total && other > 0) this.blocks.delete(other)
    this.draw()
    if (this.opening && (this.row(this.selected) || this.selected >= this.total)) this.openSelected()
  }

  setColumns(columns) {
    const same = this.columns && columns.length === this.columns.length && columns.every((c, i) => c.name === this.columns[i].name)
    this.columns = columns
    if (same) return
    this.pool.forEach(row => row.node.remove())
    this.pool = []
    const widths = { name: 'minmax(12rem, 3fr)', text: 'minmax(6rem, 1.6fr)', number: '6.5rem', time: '5.5rem', status: 'minmax(8.5rem, 1fr)' }
    this.node.style.setProperty('--columns', columns.map(c => widths[c.type] || widths.text).join(' '))
    fill(this.head, columns.map(c => {
      const label = c.path
        ? el('button', { type: 'button', onclick: () => this.sort(c.path) }, c.name, el('i', { 'aria-hidden': 'true' }))
        : c.name
      return el('div', { role: 'columnheader', class: 'c-' + c.type, 'data-path': c.path, 'data-name': c.name }, label)
    }))
    this.drawSort()
  }

  // sorted says how the rows are sorted, for the headings.
  sorted(sort) {
    this.order = sort
    this.drawSort()
  }

  drawSort() {
    for (const cell of this.head.children) {
      const path = cell.dataset.path
      const way = !path ? undefined : this.order === path ? 'ascending' : this.order === '-' + path ? 'descending' : 'none'
      if (way) cell.setAttribute('aria-sort', way)
    }
  }

  row(i) { return this.blocks.get(Math.floor(i / block))?.[i % block] }

  draw() {
    if (!this.columns) return
    const { h, first, last } = this.visible()
    this.body.style.height = Math.min(this.total * h, maxHeight) + 'px'
    this.node.setAttribute('aria-rowcount', this.total + 1)
    const from = Math.max(0, first - spare)
    const to = Math.min(this.total, last + spare, Math.floor(maxHeight / h))
    const wanted = Math.max(0, to - from)
    while (this.pool.length < wanted) this.pool.push(this.newRow())
    this.pool.forEach((slot, n) => {
      // A row keeps its element while it stays in sight.
      const i = from + ((n - from) % this.pool.length + this.pool.length) % this.pool.length
      slot.show(i < to ? i : -1, i < to ? this.row(i) : undefined, h)
    })
    this.node.setAttribute('aria-activedescendant', 'row-' + this.selected)
  }

  newRow() {
    const cells = this.columns.map(c => el('div', { role: 'gridcell', class: 'c-' + c.type, 'data-name': c.name }))
    const node = el('div', { class: 'row', role: 'row' }, cells)
    this.body.append(node)
    const slot = { node, index: -1 }
    node.addEventListener('click', () => { if (slot.data && !slot.data.gone) { this.select(slot.index); this.open(slot.data) } })
    slot.show = (i, data, h) => {
      slot.index = i
      slot.data = data
      node.hidden = i < 0
      if (i < 0) return
      node.style.transform = `translateY(${i * h}px)`
      node.id = 'row-' + i
      node.setAttribute('aria-rowindex', i + 2)
      node.setAttribute('aria-selected', String(i === this.selected))
      node.classList.toggle('wait', !data)
      node.classList.toggle('gone', Boolean(data?.gone))
      node.classList.toggle('changed', Date.now() - (data?.changed || 0) < 1500)
      this.columns.forEach((c, j) => show(cells[j], c, data?.gone ? (c.type === 'name' ? data.key : '') : data?.cells?.[j] ?? '', this.moment))
    }
    return slot
  }

  drawAges() {
    if (this.columns?.some(c => c.type === 'time')) this.draw()
  }

  select(i) {
    this.selected = Math.max(0, Math.min(i, this.total - 1))
    const { h } = this.visible()
    const top = this.selected * h
    const inside = this.scroller.clientHeight - this.head.offsetHeight
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top
    else if (top + h > this.scroller.scrollTop + inside) this.scroller.scrollTop = top + h - inside
    this.draw()
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 2)
    const moves = {
      j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page,
      g: -Infinity, Home: -Infinity, G: Infinity, End: Infinity,
    }
    if (event.key in moves) {
      this.node.focus({ preventScroll: true })
      this.opening = false
      this.select(this.selected + moves[event.key])
      return true
    }
    if (event.key === 'Enter') {
      this.openSelected()
      return true
    }
    return false
  }

  openSelected() {
    const row = this.row(this.selected)
    this.opening = !row && Boolean(this.request)
    if (row && !row.gone) this.open(row)
  }
}

function show(cell, column, text, moment) {
  if (column.type === 'time' && text) {
    cell.title = text
    text = since(text, moment)
  } else if (column.type === 'number' && /^\d+$/.test(text)) {
    text = count(Number(text))
  } else if (column.type === 'status') {
    cell.dataset.tone = tone(text)
  }
  if (column.type === 'name' || column.type === 'text') cell.title = text
  setText(cell, text)
}
