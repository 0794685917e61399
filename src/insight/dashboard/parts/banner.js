import { jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
import { duration } from '../data/format.ts'
import { useNow } from '../data/poll.ts'
export function Banner({ polled, missing }) {
  const now = useNow()
  const { fault, freshAt } = polled
  if (fault === '' && missing.length === 0) return null
  return _jsxs('div', {
    class: 'banner',
    role: 'status',
    children: [
      _jsx('span', { 'aria-hidden': 'true', children: '\u25B2 ' }),
      fault === ''
        ? `No answer from ${missing.join(', ')}: its numbers are missing below.`
        : `${fault}. ${freshAt > 0 ? `What is shown is ${duration(now - freshAt)} old.` : 'There is nothing to show yet.'}`,
    ],
  })
}
