// Entry point of a gateway thread.

import { parentLine } from '../../io/threads.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import { GatewayThread } from './gateway-thread.ts'

const line = parentLine<FromThread, ToThread>((message) => thread.receive(message))
const thread = new GatewayThread(line.data as ThreadData, line.post)
