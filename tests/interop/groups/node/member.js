// One member of a group with KafkaJS. It speaks the same lines as members/session.py.
// Its packages live in a cache directory: NODE_PATH leads there.

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const config = JSON.parse(process.argv[2])
const emit = (event, facts) => process.stdout.write(JSON.stringify({ event, ...facts }) + '\n')

const kafka = new Kafka({
  clientId: 'kafkajs-member',
  brokers: [config.bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, maxRetryTime: 500 },
})
const consumer = kafka.consumer({
  groupId: config.group,
  sessionTimeout: config.session_timeout_ms,
  heartbeatInterval: config.heartbeat_interval_ms,
  rebalanceTimeout: 30000,
  metadataMaxAge: 1000,
  maxWaitTimeInMs: 100,
})

const process_one = async ({ topic, partition, message, heartbeat }) => {
  emit('message', {
    topic,
    partition,
    offset: Number(message.offset),
    value: message.value.toString(),
  })
  const next = (BigInt(message.offset) + 1n).toString()
  try {
    await consumer.commitOffsets([{ topic, partition, offset: next }])
  } catch (error) {
    emit('commit failed', { name: error.type || error.name, text: error.message })
    throw error
  }
  emit('committed', { offsets: { [partition]: Number(next) } })
  await heartbeat()
}

const leave = async () => {
  await consumer.disconnect()
  emit('left', {})
  process.exit(0)
}

const obey = async (command) => {
  const target = [{ topic: config.topic, partitions: [command.partition] }]
  if (command.do === 'leave') return leave()
  if (command.do === 'pause') consumer.pause(target)
  if (command.do === 'resume') consumer.resume(target)
  if (command.do === 'seek') {
    consumer.seek({
      topic: config.topic,
      partition: command.partition,
      offset: String(command.offset),
    })
  }
  emit('done', command)
}

const main = async () => {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    emit('assigned', { partitions: payload.memberAssignment[config.topic] || [] })
  )
  consumer.on(consumer.events.REBALANCING, () => emit('revoked', { partitions: 'all' }))
  await consumer.connect()
  await consumer.subscribe({ topic: config.topic, fromBeginning: true })
  emit('subscribed', {})
  await consumer.run({ autoCommit: false, eachMessage: process_one })
  const lines = readline.createInterface({ input: process.stdin })
  lines.on('line', (line) => obey(JSON.parse(line)))
  lines.on('close', leave)
}

main().catch((error) => {
  emit('error', { name: error.name, text: error.message, fatal: true })
  process.exit(1)
})
