import { jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { count, latency, share } from '../data/format.ts'
import { clusterLink } from '../data/route.ts'
import { Troubles, toneOf } from './state.tsx'
import { SwitchLine } from './switch.tsx'
export function Tile({ tile }) {
  const { name, troubles, endpoints, degrade } = tile
  const is = (trouble) => (troubles.includes(trouble) ? 'hurts' : '')
  return _jsxs('li', {
    class: `tile ${toneOf(troubles)}`,
    children: [
      _jsxs('div', {
        class: 'head',
        children: [
          _jsx('h3', { children: _jsx('a', { href: clusterLink(name), children: name }) }),
          _jsx('div', { class: 'troubles', children: _jsx(Troubles, { troubles: troubles }) }),
        ],
      }),
      _jsxs('dl', {
        children: [
          _jsx(Figure, { name: 'req/s', value: count(tile.requestsPerSecond) }),
          _jsx(Figure, { name: 'errors', value: share(tile.errorRatio), class: is('errors') }),
          _jsx(Figure, { name: 'refused', value: share(tile.refusedRatio), class: is('refused') }),
          _jsx(Figure, { name: 'p99', value: latency(tile.p99), class: is('slow') }),
          _jsx(Figure, {
            name: 'endpoints',
            value: `${endpoints.up}/${endpoints.all}`,
            class: endpoints.up < endpoints.all ? 'hurts' : '',
          }),
        ],
      }),
      degrade !== null && _jsx(SwitchLine, { degrade: degrade }),
      _jsx(Spark, { values: tile.spark }),
    ],
  })
}
function Figure(props) {
  return _jsxs('div', {
    class: props.class ?? '',
    children: [_jsx('dt', { children: props.name }), _jsx('dd', { children: props.value })],
  })
}
// A line without axes, for the shape of a number over time; the number itself stands beside it.
const WIDTH = 120
const HEIGHT = 24
function Spark({ values }) {
  const most = Math.max(...values, 1e-9)
  const step = WIDTH / Math.max(values.length - 1, 1)
  const points = values.map(
    (value, i) => `${(i * step).toFixed(1)} ${(HEIGHT - 1 - (value / most) * (HEIGHT - 3)).toFixed(1)}`,
  )
  if (!values.some((value) => value > 0)) return _jsx('svg', { class: 'spark', 'aria-hidden': 'true' })
  const line = `M${points.join('L')}`
  return _jsxs('svg', {
    class: 'spark',
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
    children: [
      points.length > 1 && _jsx('path', { class: 'area', d: `${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z` }),
      points.length > 1 && _jsx('path', { class: 'line', d: line }),
    ],
  })
}
