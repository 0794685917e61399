// A command to copy: the dashboard is read-only, so changes are made where they are authorised and audited.

import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

export function Command({ line, does }: { readonly line: string; readonly does: string }): VNode {
  const [said, setSaid] = useState('')
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(line)
      setSaid('Copied')
    } catch {
      // Only pages served over TLS or from this machine may write to the clipboard.
      setSaid('Select the text to copy it')
    }
    setTimeout(() => setSaid(''), 4000)
  }
  return (
    <div class="command">
      <span class="does">{does}</span>
      <code>{line}</code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy: ${does}`}>
        Copy
      </button>
      <span class="said" role="status">
        {said}
      </span>
    </div>
  )
}
