// The objects of one table: search, sort, scroll.

import { el, fill, setText } from './dom.js'
import { get, tablePath, objectPath } from './api.js'
import { Grid } from './grid.js'
import { MomentBar } from './moment.js'
import { gapText } from './gap.js'
import { count, heardAt, rate, span } from './format.js'
import { model, condition, table as tableOf } from './model.js'

export function explorerView({ go, replace, name, params }) {
  let q = params.get('q') || ''
  let sort = params.get('sort') || ''
  let failed = ''
  // at is the moment that is shown, in milliseconds; null for now.
  let at = Date.parse(params.get('at')) || null

  const search = el('input', {
    type: 'search', id: 'search', value: q, spellcheck: 'false', autocomplete: 'off', 'aria-label': 'Search ' + name,
    placeholder: 'Search: a word, app=web, status.phase!=Running …', 'aria-describedby': 'found',
  })
  const found = el('span', { id: 'found', class: 'found', role: 'status' })
  const facts = el('span', { class: 'facts' })
  const sidebar = el('nav', { class: 'sidebar', 'aria-label': 'Resources' })
  const choice = el('select', { class: 'choice', 'aria-label': 'Resource', onchange: () => go(tablePath(choice.value) + moment()) })
  const empty = el('p', { class: 'empty', hidden: true })
  const notice = el('div', { class: 'notice past', role: 'status', hidden: true })
  const bar = new MomentBar({ table: name, at, change: moved })

  const grid = new Grid({
    label: name,
    load: async (offset, limit, signal) => {
      try {
        const path = `/api/tables/${encodeURIComponent(name)}?` + new URLSearchParams({ q, sort, offset, limit, ...(at !== null && { at: new Date(at).toISOString() }) })
        const answer = await get(path, { signal })
        failed = ''
        tell(answer.total)
        drawNotice(answer.past)
        return answer
      } catch (error) {
        if (error.name === 'AbortError') return null
        failed = error.status === 0 ? '' : error.message
        if (at !== null) grid.clear()
        drawNotice(null)
        tell(grid.total)
        return null
      }
    },
    open: row => go(objectPath(name, row.key) + moment()),
    sort: path => {
      sort = sort === path ? '-' + path : sort === '-' + path ? '' : path
      ask()
    },
  })
  grid.sorted(sort)
  grid.moment = at ?? undefined

  const root = el('div', { class: 'explorer' }, sidebar,
    el('section', { class: 'table' },
      el('h1', { class: 'visually-hidden' }, name),
      el('div', { class: 'bar' }, choice, el('label', { class: 'search' }, search, el('kbd', { 'aria-hidden': 'true' }, '/')), found, facts),
      bar.node, notice, grid.node, empty))

  let shown = -1
  function tell(total) {
    shown = total
    search.setAttribute('aria-invalid', String(failed !== ''))
    found.classList.toggle('alarm', failed !== '')
    const all = at === null ? tableOf(name)?.objects ?? total : total
    setText(found, failed || (!q.trim() ? `${count(all)} objects` : at === null ? `${count(total)} of ${count(all)}` : `${count(total)} found`))
    found.title = failed
    empty.hidden = total > 0 || failed !== ''
    if (!empty.hidden) setText(empty, tableOf(name)?.synced === false ? 'Not synced yet: nothing is here.' : q.trim() ? 'Nothing matches.' : at === null ? 'There are none.' : 'There were none.')
  }

  // moment is the end of an address that leads to the same moment.
  const moment = () => at === null ? '' : '?' + new URLSearchParams({ at: new Date(at).toISOString() })

  // moved shows the table as of another moment.
  function moved(to) {
    at = to
    address()
    drawNotice(null)
    drawLinks()
    draw()
    grid.revisit(at ?? undefined)
  }

  // drawNotice says that the past is shown, and which gaps the moment lies in.
  function drawNotice(past) {
    notice.hidden = at === null
    if (at === null) return
    fill(notice, el('b', {}, `As heard at ${heardAt(at)}`), '. This table is not updated.',
      (past?.gaps || []).map(g => el('p', { class: 'gap-note' }, gapText(g))), past?.note && el('p', {}, past.note))
  }

  function drawLinks() {
    model.tables.forEach((t, i) => sidebar.children[i]?.setAttribute('href', tablePath(t.name) + moment()))
  }

  function address() {
    const words = new URLSearchParams()
    if (q.trim()) words.set('q', q)
    if (sort) words.set('sort', sort)
    if (at !== null) words.set('at', new Date(at).toISOString())
    replace(tablePath(name) + (words.size ? '?' + words : ''))
  }

  // ask begins anew with another query or order.
  function ask() {
    address()
    grid.sorted(sort)
    const columns = grid.columns
    grid.reset()
    if (columns) grid.columns = columns
    grid.want()
  }

  let typing
  search.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(typed, 80)
  })

  // typed shows what the search says now, unless it is shown already.
  function typed() {
    clearTimeout(typing)
    if (q === search.value) return
    q = search.value
    ask()
  }

  let listed = ''
  function draw() {
    const t = tableOf(name)
    const lines = model.tables.map(t => [t.name, count(t.objects), condition(t).tone])
    const names = lines.map(line => line[0]).join(' ')
    if (names !== listed) {
      listed = names
      fill(sidebar, lines.map(([table]) => el('a', { href: tablePath(table), 'aria-current': table === name && 'page' },
        el('span', { class: 'dot' }), el('span', { class: 'label', title: table }, table.split('.')[0]), el('span', { class: 'count' }))))
      drawLinks()
      fill(choice, lines.map(([table]) => el('option', { value: table, selected: table === name }, table)))
    }
    lines.forEach(([, n, tone], i) => {
      sidebar.children[i].children[0].className = 'dot ' + tone
      setText(sidebar.children[i].children[2], n)
    })
    if (!t) return
    bar.tick()
    setText(facts, at !== null ? '' : `${condition(t).word} · ${rate(t.eventsPerSecond)} events/s · last contact ${span(t.age)} ago`)
    if (shown >= 0) tell(shown)
  }

  function neighbour(step) {
    const i = model.tables.findIndex(t => t.name === name)
    const next = model.tables[i + step]
    if (next) go(tablePath(next.name) + moment())
  }

  return {
    root, title: name, nav: 'explorer', live: { table: name },
    draw,
    start() {
      drawNotice(null)
      grid.want()
      if (location.hash === '#search') search.focus()
      else grid.node.focus({ preventScroll: true })
    },
    stop() { clearTimeout(typing); bar.close(); grid.close() },
    onEvent(event) {
      if (event === 'overview') draw()
      if (event === 'table' && at === null) grid.refresh()
    },
    onRegained() { grid.refresh() },
    onKey(event) {
      if (event.target === search) {
        if (event.key === 'Escape' || event.key === 'Enter' || event.key === 'ArrowDown') {
          typed()
          grid.node.focus({ preventScroll: true })
          return true
        }
        return false
      }
      if (bar.onKey(event)) return true
      if (bar.node.contains(event.target)) {
        if (event.key !== 'Escape') return false
        bar.set(null)
        grid.node.focus({ preventScroll: true })
        return true
      }
      if (event.key === 'm' && !bar.range.hidden && !bar.node.hidden) { bar.slider.focus(); return true }
      if (event.target.closest('button, select, a') && event.key === 'Enter') return false
      if (event.target === choice) return false
      if (event.key === '/') { search.focus(); search.select(); return true }
      if (event.key === '[') { neighbour(-1); return true }
      if (event.key === ']') { neighbour(1); return true }
      if (event.key === 'Escape') { go('/'); return true }
      return grid.onKey(event)
    },
  }
}
