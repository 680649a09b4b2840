-- Executes each command of the other scripts on a key that no entry has, and removes what it wrote. The reply has a line for each command
-- that is refused: its name and the reason. It does not stop at the first one, and uses none of the common part, which would.
local key = KEYS[1]
local refused = {}
local function try(name, ...)
  local answer = redis.pcall(name, ...)
  if type(answer) == 'table' and answer.err then refused[#refused + 1] = string.lower(name) .. ' ' .. answer.err end
end
try('TIME')
try('TYPE', key)
try('HSET', key, 'check', '1')
try('HMGET', key, 'check')
try('HGET', key, 'check')
try('PEXPIRE', key, '1')
try('HDEL', key, 'check')
try('DEL', key)
return refused
