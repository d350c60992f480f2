// All tables at a glance.

import { el, fill, setText } from './dom.js'
import { chart, spark } from './chart.js'
import { bytes, count, lapse, rate, span, clock } from './format.js'
import { model, condition, series } from './model.js'
import { tablePath } from './api.js'

export function overviewView({ go }) {
  const tiles = el('dl', { class: 'tiles' })
  const charts = {
    events: chart('Events per second', rate),
    lag: chart('Lag of the copy, the largest', lapse),
    age: chart('Time since last contact, the oldest', span),
    memory: chart('Memory of the objects', bytes),
  }
  const body = el('tbody')
  const rows = new Map()
  let selected = -1

  const root = el('div', { class: 'overview' },
    el('h1', { class: 'visually-hidden' }, 'Overview'),
    tiles,
    el('section', { class: 'charts', 'aria-label': 'The last five minutes' }, charts.events.node, charts.lag.node, charts.age.node, charts.memory.node),
    el('div', { class: 'scroll' },
      el('table', { class: 'tables' },
        el('thead', {}, el('tr', {},
          ...[['Resource'], ['State'], ['Objects', 'n'], ['Age', 'n', 'time since the last contact with the server'], ['Lag', 'n', 'how long a change waited to be in the copy, at most'], ['Events/s', 'n wide'],
            ['Relists', '', 'whole reads after the first, and why'], ['Bad', 'n', 'objects that could not be taken'],
            ['Per object', 'n', 'memory, about'], ['Memory', 'n', 'objects times memory per object']]
            .map(([name, kind, title]) => el('th', { scope: 'col', class: kind, title }, name)))),
        body)))

  function draw() {
    drawTiles()
    const names = model.tables.map(t => t.name)
    charts.events.draw(series(names, (h, i) => h.eventsPerSecond[i], (a, b) => a + b))
    charts.lag.draw(series(names, (h, i) => h.lag[i], Math.max))
    charts.age.draw(series(names, (h, i) => h.age[i], Math.max))
    charts.memory.draw(series(names, (h, i) => h.bytesPerObject[i] * h.objects[i], (a, b) => a + b))
    if (rows.size !== model.tables.length || model.tables.some(t => !rows.has(t.name))) {
      rows.clear()
      fill(body, model.tables.map(t => {
        const row = tableRow(t, go)
        rows.set(t.name, row)
        return row.nodes
      }))
    }
    for (const t of model.tables) rows.get(t.name).draw(t)
  }

  function drawTiles() {
    const total = (pick, combine = (a, b) => a + b) => model.tables.map(pick).reduce((a, b) => combine(a, b), 0)
    const synced = model.tables.filter(t => t.synced).length
    const facts = [
      ['Objects', count(total(t => t.objects)), `in ${model.tables.length} resources`],
      ['Events', rate(total(t => t.eventsPerSecond)) + '/s', count(total(t => t.events)) + ' so far'],
      ['Freshness', span(total(t => t.age, Math.max)), 'of the oldest resource'],
      ['Memory', bytes(total(t => t.objects * t.bytesPerObject)), 'estimated'],
      ['Synced', `${synced} of ${model.tables.length}`, model.problems ? `${model.problems} problem${model.problems > 1 ? 's' : ''}` : 'no problems'],
    ]
    if (tiles.children.length !== facts.length) {
      fill(tiles, facts.map(() => el('div', {}, el('dt'), el('dd'), el('small'))))
    }
    facts.forEach((fact, i) => fact.forEach((text, j) => setText(tiles.children[i].children[j], text)))
    tiles.lastChild.classList.toggle('warn', model.problems > 0)
  }

  function select(i) {
    const all = [...rows.values()]
    selected = Math.max(0, Math.min(i, all.length - 1))
    all[selected]?.link.focus()
  }

  return {
    root, title: 'Overview', nav: 'overview', live: {},
    draw,
    onEvent(name) { if (name === 'overview') draw() },
    onKey(event) {
      const focused = [...rows.values()].findIndex(row => row.link === document.activeElement)
      if (focused >= 0) selected = focused
      if (event.key === 'j' || event.key === 'ArrowDown') return select(selected + 1), true
      if (event.key === 'k' || event.key === 'ArrowUp') return select(selected - 1), true
      if (event.key === '/' && model.tables.length) return go(tablePath(model.tables[0].name) + '#search'), true
      return false
    },
  }
}

function tableRow(t, go) {
  const cells = {
    state: el('td', { class: 'state' }), objects: el('td', { class: 'n' }), age: el('td', { class: 'n' }), lag: el('td', { class: 'n' }), relists: el('td', { class: 'relists' }),
    bad: el('td', { class: 'n' }), each: el('td', { class: 'n' }), memory: el('td', { class: 'n' }),
  }
  const line = spark()
  const now = el('span', { class: 'figure' })
  const link = el('a', { href: tablePath(t.name) }, t.name.split('.')[0], t.group && el('small', {}, '.' + t.group))
  const dot = el('span', { class: 'dot' })
  const word = el('span')
  const bar = el('progress', { max: 1, hidden: true, 'aria-label': 'progress' })
  fill(cells.state, dot, word, bar)
  const row = el('tr', { onclick: event => { if (!event.target.closest('a')) go(tablePath(t.name)) } },
    el('th', { scope: 'row' }, link), cells.state, cells.objects, cells.age, cells.lag, el('td', { class: 'n wide' }, line.node, now),
    cells.relists, cells.bad, cells.each, cells.memory)
  const why = el('td', { colspan: 10 })
  const trouble = el('tr', { class: 'why', hidden: true }, why)

  return {
    nodes: [row, trouble],
    link,
    draw(t) {
      const c = condition(t)
      dot.className = 'dot ' + c.tone
      setText(word, t.synced || !t.expected ? c.word : `${c.word} ${Math.min(99, Math.floor(t.received / t.expected * 100))}%`)
      bar.hidden = t.synced || !t.expected
      if (!bar.hidden) bar.value = t.received / t.expected
      setText(cells.objects, count(t.synced ? t.objects : t.received))
      setText(cells.age, t.lastContact ? span(t.age) : '–')
      setText(cells.lag, t.synced ? lapse(t.lag) : '–')
      const h = model.histories.get(t.name)
      line.draw(h ? h.eventsPerSecond.slice(-120) : [])
      setText(now, rate(t.eventsPerSecond))
      const causes = Object.entries(t.relists).filter(([cause]) => cause !== 'start').sort((a, b) => b[1] - a[1])
      setText(cells.relists, causes.map(([cause, n]) => n > 1 ? `${cause} ×${n}` : cause).join(', ') || '–')
      setText(cells.bad, t.bad ? count(t.bad) : '–')
      cells.bad.classList.toggle('alarm', t.bad > 0)
      setText(cells.each, bytes(t.bytesPerObject))
      setText(cells.memory, bytes(t.bytesPerObject * t.objects))
      trouble.hidden = !t.error
      if (t.error) {
        setText(why, `since ${clock(t.errorSince)}: ${t.error}`)
        why.title = t.error
      }
    },
  }
}
