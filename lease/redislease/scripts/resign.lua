-- ARGV: token, channel, key without prefix.
local e = entry()
if not e or e.token ~= ARGV[1] or not held(e) then return {'lost'} end
put(e, {resigned = 1})
notify(ARGV[2], ARGV[3])
return {'resigned'}
