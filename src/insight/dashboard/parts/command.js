import { useState } from 'preact/hooks'
import { jsx as _jsx, jsxs as _jsxs } from 'preact/jsx-runtime'
export function Command({ line, does }) {
  const [said, setSaid] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line)
      setSaid('Copied')
    } catch {
      // Only pages with TLS, or of this machine, may write to the clipboard.
      setSaid('Select the text to copy it')
    }
    setTimeout(() => setSaid(''), 4000)
  }
  return _jsxs('div', {
    class: 'command',
    children: [
      _jsx('span', { class: 'does', children: does }),
      _jsx('code', { children: line }),
      _jsx('button', { type: 'button', onClick: () => void copy(), 'aria-label': `Copy: ${does}`, children: 'Copy' }),
      _jsx('span', { class: 'said', role: 'status', children: said }),
    ],
  })
}
