// One event stream to the server, for whatever the page shows.
//
// A stream tells the overview every second. If nothing is heard for five, the
// connection is taken for lost, even if the browser still believes in it. A tab
// that nobody sees has no stream: browsers allow only six to a server.

const silence = 5000
const retryMin = 500
const retryMax = 5000

export class Live {
  constructor({ onEvent, onState, onLost }) {
    this.onEvent = onEvent
    this.onState = onState
    this.onLost = onLost
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
    const source = new EventSource('/api/events?' + new URLSearchParams(this.params))
    this.source = source
    for (const name of ['overview', 'table', 'object', 'related']) {
      source.addEventListener(name, event => {
        if (source !== this.source) return
        this.heard()
        this.onEvent(name, JSON.parse(event.data))
      })
    }
    source.onerror = () => { if (source === this.source) this.lose() }
    this.expect()
  }

  close() {
    clearTimeout(this.timer)
    if (this.source) this.source.close()
    this.source = null
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
    this.enter('lost')
    this.onLost()
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
