// One event stream to the server, for whatever the page shows.
//
// A stream tells the overview every second. If nothing is heard for five, the
// connection is taken for lost, even if the browser still believes in it. A tab
// that nobody sees has no stream: browsers allow only six to a server.
//
// Why not an EventSource: it cannot send the session, and does not say why it was
// refused.

import { send } from './api.js'

const silence = 5000
const retryMin = 500
const retryMax = 5000

export class Live {
  constructor({ onEvent, onState, onRefused }) {
    this.onEvent = onEvent
    this.onState = onState
    this.onRefused = onRefused
    this.params = null
    this.state = 'wait'
    this.retry = retryMin
    document.addEventListener('visibilitychange', () => document.hidden ? this.close() : this.open())
    addEventListener('pagehide', () => this.close())
  }

  // follow changes what is followed beside the overview; null follows nothing.
  follow(params) {
    this.params = params
    this.retry = retryMin
    this.open()
  }

  open() {
    this.close()
    if (!this.params) return
    const stream = new AbortController()
    this.stream = stream
    this.expect()
    this.read(stream).catch(() => {}).then(() => { if (stream === this.stream) this.lose() })
  }

  async read(stream) {
    const response = await send('/api/events?' + new URLSearchParams(this.params), { signal: stream.signal })
    if (!response.ok) {
      if (stream === this.stream) this.onRefused(response.status)
      return
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = ''; ;) {
      const { done, value } = await reader.read()
      if (done) return
      const parts = (rest + value).split('\n\n')
      rest = parts.pop()
      for (const part of parts) this.tell(stream, part)
    }
  }

  // tell passes one event on: a line with its name and one with its data.
  tell(stream, text) {
    if (stream !== this.stream) return
    const fields = Object.fromEntries(text.split('\n').map(line => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]))
    if (!fields.event) return
    this.heard()
    this.onEvent(fields.event, JSON.parse(fields.data))
  }

  close() {
    clearTimeout(this.timer)
    const stream = this.stream
    this.stream = null
    stream?.abort()
  }

  heard() {
    this.retry = retryMin
    this.expect()
    this.enter('live')
  }

  expect() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.lose(), silence)
  }

  lose() {
    this.close()
    if (!this.params) return
    this.enter('lost')
    this.timer = setTimeout(() => this.open(), this.retry)
    this.retry = Math.min(this.retry * 2, retryMax)
  }

  enter(state) {
    if (state === this.state) return
    const before = this.state
    this.state = state
    this.onState(state, before)
  }
}
