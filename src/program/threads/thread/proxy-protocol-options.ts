// PROXY protocol options of a port from the settings, and reports of header results: metrics count, the log names the address.

import { HANDSHAKE_TIMEOUT_MS } from '../../../gateway/io/listener/connections.ts'
import type { ProxyProtocolOptions } from '../../../gateway/io/listener/proxy-protocol.ts'
import { PROXY_PROTOCOL } from '../../../gateway/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import { RareWarnings } from '../../../kit/io/logs/rare-warnings.ts'
import type { Config } from '../../../process/config/config.ts'

/** The specification's recommended minimum: a header may be in the second segment, and segments get lost. */
const LEAST_HEADER_MS = 3_000

export function proxyProtocolOptions(config: Config, gateway: Gateway, metrics: MetricsRecorder): ProxyProtocolOptions {
  const { proxyProtocolFrom: from, proxyProtocolOthers: others, headerTimeoutMs } = config
  const [untrusted, broken] = [new RareWarnings(gateway), new RareWarnings(gateway)]
  return {
    from,
    others,
    timeoutMs: Math.max(LEAST_HEADER_MS, Math.min(HANDSHAKE_TIMEOUT_MS, headerTimeoutMs)),
    onOutcome(outcome, address, problem) {
      metrics.add(PROXY_PROTOCOL, 1, outcome)
      if (outcome === 'untrusted') {
        untrusted.warn('connections refused: the address is not in --proxy-protocol-from', { address })
      } else if (outcome === 'invalid' || outcome === 'timeout' || outcome === 'overflow') {
        broken.warn('connections without a PROXY header were closed', { address, outcome, problem })
      }
    },
  }
}
