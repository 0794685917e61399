import { Fragment as _Fragment, jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'

const SIGNS = { good: '●', neutral: '○', warn: '◆', bad: '▲' }
export function State({ tone, children }) {
  return _jsxs('span', {
    class: `state ${tone}`,
    children: [_jsxs('span', { 'aria-hidden': 'true', children: [SIGNS[tone], ' '] }), children],
  })
}
const TROUBLES = {
  down: ['bad', 'no endpoint'],
  errors: ['bad', 'errors'],
  endpoints: ['warn', 'endpoints down'],
  credentials: ['bad', 'credential refused'],
  refused: ['warn', 'refusing'],
  slow: ['warn', 'slow'],
  degraded: ['warn', 'switched'],
}
export function Troubles({ troubles }) {
  if (troubles.length === 0) return _jsx(State, { tone: 'good', children: 'healthy' })
  return _jsx(_Fragment, {
    children: troubles.map((trouble) => {
      const [tone, word] = TROUBLES[trouble] ?? ['warn', trouble]
      return _jsx(State, { tone: tone, children: word }, trouble)
    }),
  })
}
/** The worst of them. */
export function toneOf(troubles) {
  const tones = troubles.map((trouble) => TROUBLES[trouble]?.[0] ?? 'warn')
  return tones.includes('bad') ? 'bad' : tones.includes('warn') ? 'warn' : 'good'
}
