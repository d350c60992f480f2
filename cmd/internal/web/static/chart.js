// Small charts of the last five minutes, drawn as SVG.

import { el, svg, setText } from './dom.js'

const width = 300
const height = 100
const minutes = 5

// What is less than this is drawn low, so that what is quiet looks quiet.
const sparkFloor = 5

// spark draws values without axes.
export function spark() {
  const area = svg('path', { class: 'area' })
  const stroke = svg('path', { class: 'stroke' })
  const node = svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, area, stroke)
  return {
    node,
    draw(values) {
      const top = Math.max(sparkFloor, ...values)
      const step = width / Math.max(1, values.length - 1)
      draw(area, stroke, values.map((v, i) => [i * step, height - 4 - (v / top) * (height - 8)]))
    },
  }
}

// chart draws points over time, with the highest value named, and tells the
// value under the pointer.
export function chart(title, format) {
  const area = svg('path', { class: 'area' })
  const stroke = svg('path', { class: 'stroke' })
  const cross = svg('line', { class: 'cross', y1: 0, y2: height })
  const node = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('line', { class: 'rule', x1: 0, x2: width, y1: 4, y2: 4 }),
    svg('line', { class: 'rule', x1: 0, x2: width, y1: 52, y2: 52 }),
    svg('line', { class: 'rule', x1: 0, x2: width, y1: 99.5, y2: 99.5 }), area, stroke, cross)
  const now = el('b')
  const high = el('span', { class: 'high' })
  const when = el('span', { class: 'when' }, 'now')
  const figure = el('figure', { class: 'chart', role: 'img', 'aria-label': title },
    el('figcaption', {}, el('span', {}, title), now),
    el('div', { class: 'plot' }, node, high),
    el('div', { class: 'axis' }, el('span', {}, `${minutes} min ago`), when))
  let points = []
  let pointer = null
  const show = () => {
    const last = points.at(-1)
    const at = pointer === null ? last : points.reduce((best, p) => Math.abs(p[2] - pointer) < Math.abs(best[2] - pointer) ? p : best, last || [0, 0, 0])
    if (!at) return
    setText(now, format(at[1]))
    setText(when, pointer === null || at === last ? 'now' : new Date(at[0] * 1000).toLocaleTimeString('en-GB'))
    cross.setAttribute('x1', at[2])
    cross.setAttribute('x2', at[2])
    cross.setAttribute('class', pointer === null ? 'cross off' : 'cross')
  }
  node.addEventListener('pointermove', event => { pointer = event.offsetX / node.clientWidth * width; show() })
  node.addEventListener('pointerleave', () => { pointer = null; show() })
  return {
    node: figure,
    draw(found) {
      const end = found.length ? found.at(-1)[0] : 0
      const top = Math.max(1e-9, ...found.map(p => p[1])) * 1.05
      points = found.filter(p => p[0] > end - minutes * 60).map(([time, value]) => [time, value, width - (end - time) / (minutes * 60) * width])
      draw(area, stroke, points.map(p => [p[2], height - (p[1] / top) * (height - 4)]))
      setText(high, found.length ? format(top / 1.05) : '')
      figure.setAttribute('aria-label', `${title}: ${found.length ? format(found.at(-1)[1]) : 'nothing yet'}`)
      show()
    },
  }
}

function draw(area, stroke, points) {
  if (!points.length) return
  const path = points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('')
  stroke.setAttribute('d', path)
  area.setAttribute('d', `${path}L${points.at(-1)[0].toFixed(1)} ${height}L${points[0][0].toFixed(1)} ${height}Z`)
}
