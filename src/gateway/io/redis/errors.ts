// Turns Redis' refusals into messages that tell an operator what to do.

/** Permissions that the gateway's user needs in Redis: for each topology, and for the Sentinels. Tested word by word. */
export const ACL_RULES = {
  server:
    '~portcullis:* +eval +evalsha +time +hmget +hset +hgetall +hdel +expire +pexpire +zadd +zrem +zrange +zremrangebyscore +info +client|setname',
  cluster:
    '~{portcullis}:* +eval +evalsha +time +hmget +hset +hgetall +hdel +expire +pexpire +zadd +zrem +zrange +zremrangebyscore +info +client|setname +cluster|slots +cluster|info',
  sentinel:
    'resetchannels &+switch-master +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels +client|setname',
} as const

/** Errors that only an operator can fix. */
export const LASTING: RegExp =
  /^(NOAUTH|WRONGPASS|NOPERM|MOVED|NOREPLICAS|MISCONF|OOM|ERR (AUTH|invalid password|Client sent AUTH|This instance has cluster support disabled|The user executing the script|ACL failure))|ACL failure|certificate|because (NOAUTH|WRONGPASS|NOPERM)/i

/** The message with its fix. */
export function explained(message: string, topology: keyof typeof ACL_RULES): string {
  if (/^MOVED /.test(message)) return `${message}: it is a Redis Cluster; write redis+cluster:// in --redis-url`
  if (/cluster support disabled/.test(message))
    return `${message}: it is not a Redis Cluster; write redis:// in --redis-url`
  if (/NOPERM|ACL failure|user executing the script/.test(message)) {
    return `${message} (the user of the gateway needs: ${ACL_RULES[topology]})`
  }
  return message
}
