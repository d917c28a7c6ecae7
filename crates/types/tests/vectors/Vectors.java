// Asks Cassandra's own classes what values, keys and literals look like, and prints the answers
// that the tests beside compare ours with. One table per first argument:
//
//   javac -cp 'CASSANDRA/lib/*' -d OUT Vectors.java
//   java -Duser.timezone=UTC -cp 'OUT:CASSANDRA/lib/*' Vectors values > values.tsv
//   (the same with "literals" reads literals.txt)
//
// Fields are separated by tabs; bytes are hexadecimal, text has \\ doubled and control characters as \ and two hexadecimal digits, and a null
// or a refusal is written as "-" (or "!" and the message).

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.cassandra.db.*;
import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.dht.*;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.bytecomparable.*;

public class Vectors
{
    static final Random random = new Random(20);
    static final String M = "org.apache.cassandra.db.marshal.";

    static final String[] TYPES = {
        "AsciiType", "UTF8Type", "BytesType", "BooleanType", "ByteType", "ShortType", "Int32Type", "LongType",
        "FloatType", "DoubleType", "DecimalType", "IntegerType", "SimpleDateType", "TimeType", "TimestampType",
        "DurationType", "InetAddressType", "UUIDType", "TimeUUIDType",
        "FrozenType(ListType(Int32Type))", "ListType(UTF8Type)", "FrozenType(SetType(IntegerType))",
        "FrozenType(MapType(UTF8Type,LongType))", "FrozenType(MapType(Int32Type,FrozenType(ListType(BooleanType))))",
        "TupleType(Int32Type,UTF8Type,DecimalType)", "TupleType(FrozenType(ListType(UTF8Type)),TimeUUIDType)",
        "FrozenType(UserType(ks,61646472657373,737472656574:UTF8Type,4e6f:Int32Type,7461626c65:BytesType))",
        "VectorType(FloatType,3)", "VectorType(UTF8Type,2)", "VectorType(VectorType(Int32Type,2),2)",
        "VectorType(TupleType(Int32Type,UTF8Type),2)", "ListType(FrozenType(SetType(DurationType)))",
        "FrozenType(SetType(FrozenType(UserType(ks,74,61:DoubleType,62:InetAddressType))))",
    };

    public static void main(String[] args) throws Exception
    {
        System.setOut(new java.io.PrintStream(System.out, true, "UTF-8"));
        switch (args[0])
        {
            case "values": values(); break;
            case "validate": validate(); break;
            case "tokens": tokens(); break;
            case "clusterings": clusterings(); break;
            case "literals": literals(); break;
            case "names": names(); break;
            case "floats": floats(); break;
            case "durations": durations(); break;
        }
    }

    static AbstractType<?> parse(String s) { return TypeParser.parse(s); }

    static String hex(ByteBuffer b) { return b == null ? "-" : "x" + ByteBufferUtil.bytesToHex(b); }

    static String text(String s)
    {
        StringBuilder sb = new StringBuilder();
        for (char c : s.toCharArray())
            if (c == '\\') sb.append("\\\\");
            else if (c < 0x20 || c == 0x7f) sb.append(String.format("\\%02x", (int) c));
            else sb.append(c);
        return sb.toString();
    }

    static String form(ByteSource source)
    {
        if (source == null) return "-";
        StringBuilder sb = new StringBuilder("x");
        for (int b = source.next(); b != ByteSource.END_OF_STREAM; b = source.next()) sb.append(String.format("%02x", b));
        return sb.toString();
    }

    interface Ask { String get() throws Exception; }

    static String ask(Ask ask)
    {
        try { return text(ask.get()); }
        catch (Throwable t) { return "!" + (t instanceof org.apache.cassandra.serializers.MarshalException || t instanceof org.apache.cassandra.exceptions.InvalidRequestException ? text(String.valueOf(t.getMessage())) : t.getClass().getSimpleName()); }
    }

    static void values()
    {
        for (String name : TYPES)
        {
            AbstractType<?> type = parse(name);
            ByteBuffer previous = null;
            for (int i = 0; i < 28; i++)
            {
                ByteBuffer value = make(type, i);
                try { type.validate(value); } catch (Exception e) { continue; }
                final ByteBuffer p = previous;
                String order = p == null ? "0" : ask(() -> "" + Integer.signum(type.compare(p, value)));
                System.out.println(String.join("\t", name, hex(value), order,
                    ask(() -> form(type.asComparableBytes(value, ByteComparable.Version.OSS50))),
                    ask(() -> type.asCQL3Type().toCQLLiteral(value)),
                    ask(() -> type.getString(value)),
                    ask(() -> type.toJSONString(value, ProtocolVersion.V5))));
                previous = value;
            }
        }
    }

    static ByteBuffer b(byte[] bytes) { return ByteBuffer.wrap(bytes); }
    static ByteBuffer b(String s) { return b(s.getBytes(StandardCharsets.UTF_8)); }
    static ByteBuffer b(long v) { return ByteBufferUtil.bytes(v); }
    static byte[] some(int n) { byte[] r = new byte[n]; random.nextBytes(r); return r; }

    static ByteBuffer make(AbstractType<?> type, int i)
    {
        AbstractType<?> t = type.unwrap();
        if (i == 27) return ByteBufferUtil.EMPTY_BYTE_BUFFER;
        if (t instanceof AsciiType) return b(pick(i, "", "a", "ab", "it's", "\0", "a\0", "a\0\0b", "z\"\\\n\t", "\u0001\u007f"));
        if (t instanceof UTF8Type) return b(pick(i, "", "a", "é", "it's ''", "\0", "a\0", "日本", "\ud83d\ude00", "a\0\0", "a\0b", "\u2028\u0007\"", "tab\tnew\n"));
        if (t instanceof BytesType)
        {
            byte[] r = some(random.nextInt(6));
            for (int k = 0; k < r.length; k++) if (random.nextInt(2) == 0) r[k] = (byte) (random.nextBoolean() ? 0 : 0xff);
            return b(r);
        }
        if (t instanceof BooleanType) return b(new byte[]{ (byte) (i % 3) });
        if (t instanceof ByteType) return b(new byte[]{ (byte) random.nextInt() });
        if (t instanceof ShortType) return ByteBufferUtil.bytes((short) random.nextInt());
        if (t instanceof Int32Type) return ByteBufferUtil.bytes(random.nextInt() >> random.nextInt(32));
        if (t instanceof LongType) return b(random.nextLong() >> random.nextInt(64));
        if (t instanceof FloatType)
        {
            float[] f = { 0f, -0f, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.MIN_VALUE, Float.MAX_VALUE, 1f, -1.5f, 1e7f, 9999999f, 1e-3f, 9.99e-4f, 0.1f, 3.4e10f, 123456.79f, 2e-44f, 1.17549435E-38f, 16777216f };
            return ByteBufferUtil.bytes(i < f.length ? f[i] : Float.intBitsToFloat(random.nextInt()));
        }
        if (t instanceof DoubleType)
        {
            double[] f = { 0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE, Double.MAX_VALUE, 1, -1.5, 1e7, 9999999, 1e-3, 9.99e-4, 0.1, 2e23, 2.2250738585072014E-308, 1e21, 123456789.125 };
            return ByteBufferUtil.bytes(i < f.length ? f[i] : random.nextBoolean() ? Double.longBitsToDouble(random.nextLong()) : random.nextGaussian() * 1000);
        }
        if (t instanceof DecimalType)
        {
            String[] d = { "0", "0.00", "0E+7", "1", "10", "1.0", "-1", "0.1", "-0.01", "1E+9", "1E-9", "-123.456", "99.99", "-99.99", "100", "-100", "1E+2147483647", "1E-2147483647", "123456789012345678901234567890.5", "-5E+1234", "0.000001", "0.0000001", "-1E-300" };
            if (i < d.length) return DecimalType.instance.decompose(new java.math.BigDecimal(d[i]));
            return DecimalType.instance.decompose(new java.math.BigDecimal(new java.math.BigInteger(random.nextInt(90), random), random.nextInt(40) - 20).multiply(java.math.BigDecimal.valueOf(random.nextBoolean() ? 1 : -1)));
        }
        if (t instanceof IntegerType)
        {
            if (i == 0) return b(new byte[]{ 0 });
            if (i == 1) return b(new byte[]{ -1 });
            if (i == 2) return b(new byte[]{ 0, 0, 5 });
            if (i == 3) return b(new byte[]{ 0, -128, 0, 0, 0, 0, 0 });
            if (i == 4) return b(new byte[]{ -1, 127, 0, 0, 0, 0, 0 });
            if (i == 5) return b(new byte[]{ -1, -1, 0, 0, 0, 0, 0, 0 });
            if (i == 6) return b(some(300));
            if (i == 7) return b(some(80));
            return b(new java.math.BigInteger(random.nextInt(120), random).multiply(java.math.BigInteger.valueOf(random.nextBoolean() ? 1 : -1)).toByteArray());
        }
        if (t instanceof SimpleDateType) return ByteBufferUtil.bytes(i == 0 ? 0 : i == 1 ? -1 : i == 2 ? Integer.MIN_VALUE : i < 12 ? Integer.MIN_VALUE + random.nextInt(100000) - 50000 : random.nextInt());
        if (t instanceof TimeType) return b(i == 0 ? 0 : i == 1 ? 86399999999999L : Math.floorMod(random.nextLong(), 86400000000000L));
        if (t instanceof TimestampType) return b(i == 0 ? 0 : i == 1 ? -1 : i == 2 ? 253402300800000L : i == 3 ? -62167219200001L : i == 4 ? -62135596800000L : i == 5 ? Long.MAX_VALUE : i == 6 ? Long.MIN_VALUE : random.nextLong() >> (10 + random.nextInt(40)));
        if (t instanceof DurationType)
        {
            int sign = random.nextBoolean() ? 1 : -1;
            int m = i % 3 == 0 ? 0 : random.nextInt(1000), d = i % 4 == 0 ? 0 : random.nextInt(1000);
            long n = i % 5 == 0 ? 0 : (random.nextLong() >>> (1 + random.nextInt(60)));
            if (i == 1) { m = Integer.MAX_VALUE; d = Integer.MAX_VALUE; n = Long.MAX_VALUE; }
            return DurationType.instance.decompose(org.apache.cassandra.cql3.Duration.newInstance(sign * m, sign * d, sign * n));
        }
        if (t instanceof InetAddressType)
        {
            byte[] r = some(random.nextBoolean() ? 4 : 16);
            if (r.length == 16) for (int k = 0; k < 16; k++) if (random.nextInt(3) > 0 && k % 2 == 0) { r[k] = 0; r[k + 1] = 0; }
            if (i == 0) return b(new byte[16]);
            return b(r);
        }
        if (t instanceof UUIDType || t instanceof TimeUUIDType)
        {
            byte[] r = some(16);
            if (i > 1 && random.nextInt(3) == 0) Arrays.fill(r, 0, 8, (byte) i);
            int version = t instanceof TimeUUIDType || i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : random.nextInt(16);
            r[6] = (byte) ((r[6] & 0x0f) | (version << 4));
            return b(r);
        }
        if (t instanceof ListType) return pack(1, i, ((ListType<?>) t).getElementsType());
        if (t instanceof SetType) return pack(1, i, ((SetType<?>) t).getElementsType());
        if (t instanceof MapType) return pack(1, i, ((MapType<?, ?>) t).getKeysType(), ((MapType<?, ?>) t).getValuesType());
        if (t instanceof TupleType)
        {
            TupleType tt = (TupleType) t;
            ByteBuffer[] parts = new ByteBuffer[1 + random.nextInt(tt.size())];
            for (int k = 0; k < parts.length; k++) parts[k] = random.nextInt(4) == 0 ? null : make(tt.type(k), random.nextInt(27));
            return TupleType.buildValue(parts);
        }
        if (t instanceof VectorType)
        {
            VectorType<?> v = (VectorType<?>) t;
            List<ByteBuffer> parts = new ArrayList<>();
            for (int k = 0; k < v.dimension; k++) parts.add(make(v.elementType, random.nextInt(27)));
            return v.decomposeRaw(parts);
        }
        throw new IllegalArgumentException(t.toString());
    }

    static String pick(int i, String... of) { return i < of.length ? of[i] : of[random.nextInt(of.length)] + of[random.nextInt(of.length)]; }

    static ByteBuffer pack(int unused, int i, AbstractType<?>... types)
    {
        int n = i == 0 ? 0 : random.nextInt(4);
        List<ByteBuffer> parts = new ArrayList<>();
        for (int k = 0; k < n; k++) for (AbstractType<?> type : types) parts.add(make(type, random.nextInt(27)));
        return org.apache.cassandra.serializers.CollectionSerializer.pack(parts, n);
    }

    static void validate()
    {
        for (String name : TYPES)
        {
            AbstractType<?> type = parse(name);
            for (int i = 0; i < 26; i++)
            {
                ByteBuffer v;
                if (i < 8) v = b(some(new int[]{ 0, 1, 2, 3, 4, 8, 16, 17 }[i]));
                else
                {
                    byte[] good = ByteBufferUtil.getArray(make(type, i));
                    int what = random.nextInt(3);
                    if (what == 0 && good.length > 0) v = b(Arrays.copyOf(good, random.nextInt(good.length)));
                    else if (what == 1) v = b(Arrays.copyOf(good, good.length + 1 + random.nextInt(5)));
                    else { if (good.length > 0) good[random.nextInt(good.length)] ^= (byte) (1 << random.nextInt(8)); v = b(good); }
                }
                System.out.println(name + "\t" + hex(v) + "\t" + ask(() -> { type.validate(v); return "ok"; }));
            }
        }
    }

    static void tokens()
    {
        for (int n = 0; n < 36; n++)
            for (int k = 0; k < 3; k++)
            {
                ByteBuffer key = b(some(n));
                DecoratedKey dk = Murmur3Partitioner.instance.decorateKey(key);
                System.out.println(hex(key) + "\t" + dk.getToken().getTokenValue() + "\t" + form(dk.asComparableBytes(ByteComparable.Version.OSS50)));
            }
    }

    static void clusterings()
    {
        String[][] sets = { { "Int32Type", "UTF8Type" }, { "ReversedType(UTF8Type)", "ReversedType(Int32Type)", "LongType" },
                            { "ReversedType(TimeUUIDType)" }, { "DecimalType", "ReversedType(DecimalType)" }, { "ReversedType(BytesType)", "InetAddressType" } };
        ClusteringPrefix.Kind[] kinds = ClusteringPrefix.Kind.values();
        for (String[] set : sets)
            for (int i = 0; i < 30; i++)
            {
                List<AbstractType<?>> types = new ArrayList<>();
                for (String s : set) types.add(parse(s));
                ClusteringComparator comparator = new ClusteringComparator(types);
                ClusteringPrefix.Kind kind = i % 2 == 0 ? ClusteringPrefix.Kind.CLUSTERING : kinds[random.nextInt(8)];
                if (kind == ClusteringPrefix.Kind.STATIC_CLUSTERING) kind = ClusteringPrefix.Kind.INCL_END_BOUND;
                int n = kind == ClusteringPrefix.Kind.CLUSTERING ? set.length : 1 + random.nextInt(set.length);
                ByteBuffer[] values = new ByteBuffer[n];
                List<String> shown = new ArrayList<>();
                for (int k = 0; k < n; k++)
                {
                    int r = random.nextInt(8);
                    boolean clustering = kind == ClusteringPrefix.Kind.CLUSTERING;
                    values[k] = r == 0 && clustering ? null : make(types.get(k), r == 1 ? 27 : random.nextInt(27));
                    shown.add(hex(values[k]));
                }
                ClusteringPrefix<?> prefix = kind == ClusteringPrefix.Kind.CLUSTERING ? Clustering.make(values)
                    : kind.isBoundary() ? ByteBufferAccessor.instance.factory().boundary(kind, values) : ByteBufferAccessor.instance.factory().bound(kind, values);
                System.out.println(String.join(";", set) + "\t" + kind + "\t" + String.join(";", shown) + "\t"
                    + ask(() -> form(comparator.asByteComparable(prefix).asComparableBytes(ByteComparable.Version.OSS50))));
            }
    }

    static void literals() throws Exception
    {
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine())
        {
            String line = in.nextLine();
            int tab = line.indexOf('\t');
            if (tab < 0) continue;
            String name = line.substring(0, tab), raw = line.substring(tab + 1);
            String literal = raw.replace("\\\\", "\\");
            AbstractType<?> type = parse(name);
            System.out.println(name + "\t" + raw + "\t" + ask(() -> hex(type.fromString(literal))));
        }
    }

    static void durations()
    {
        for (int i = 0; i < 300; i++)
        {
            long millis = Math.floorMod(random.nextLong(), 4000000000000L), start = i % 3 == 0 ? 0 : Math.floorMod(random.nextLong(), millis);
            int months = i % 2 == 0 ? 0 : random.nextInt(40), days = i % 5 == 0 ? 0 : random.nextInt(70);
            long nanos = i % 7 == 0 ? 0 : random.nextInt(100000000) * 1000000L / (i % 4 == 0 ? 1 : 100);
            org.apache.cassandra.cql3.Duration d = org.apache.cassandra.cql3.Duration.newInstance(months, days, nanos);
            long inDay = Math.floorMod(random.nextLong(), 86400000000000L);
            System.out.println(String.join("\t", d.toString(), "" + millis, "" + start, "" + inDay, "" + d.addTo(millis), "" + d.substractFrom(millis),
                ask(() -> "" + org.apache.cassandra.cql3.Duration.floorTimestamp(millis, d, start)),
                ask(() -> "" + org.apache.cassandra.cql3.Duration.floorTime(inDay, d))));
        }
    }

    static void floats()
    {
        for (int i = 0; i < 500; i++)
        {
            double d = i < 60 ? Math.pow(10, i - 30) : i < 140 ? Math.pow(2, (i - 100) * 7) : i < 250 ? Double.longBitsToDouble(random.nextLong() & Long.MAX_VALUE)
                : i < 400 ? random.nextInt(100000) / 1000.0 * Math.pow(10, random.nextInt(20) - 6) : random.nextLong() >>> random.nextInt(60);
            float f = i < 60 ? (float) d : i < 140 ? (float) Math.pow(2, i - 120) : i < 250 ? Float.intBitsToFloat(random.nextInt() & Integer.MAX_VALUE) : (float) d;
            if (d == 0 || f == 0 || Double.isNaN(d) || Float.isNaN(f)) continue;
            System.out.println(hex(ByteBufferUtil.bytes(d)) + "\t" + d + "\t" + hex(ByteBufferUtil.bytes(f)) + "\t" + f);
        }
    }

    static void names()
    {
        List<String> all = new ArrayList<>(Arrays.asList(TYPES));
        all.addAll(Arrays.asList("CounterColumnType", "EmptyType", "ReversedType(FrozenType(ListType(Int32Type)))",
            "ListType(Int32Type)", "SetType(FrozenType(MapType(Int32Type,FrozenType(SetType(UTF8Type)))))",
            "UserType(ks,54,61:FrozenType(ListType(Int32Type)))", "UserType(Ks2,6b6579,61:ListType(Int32Type),62:UTF8Type)",
            "MapType(UTF8Type,FrozenType(UserType(ks,696e6e6572,61:TupleType(Int32Type,FrozenType(ListType(UTF8Type))))))",
            "CompositeType(UTF8Type,ReversedType(Int32Type))", "FrozenType(ListType(ListType(SetType(Int32Type))))",
            "FrozenType(TupleType(Int32Type))", "FrozenType(Int32Type)", "VectorType(FrozenType(ListType(UTF8Type)) , 4)", " MapType( UTF8Type , Int32Type )",
            "TupleType(TupleType(Int32Type,BytesType),VectorType(FloatType,2))", "ListType(FrozenType(UserType(ks,74,61:ListType(Int32Type))))"));
        for (String name : all)
        {
            AbstractType<?> type = parse(name);
            System.out.println(name + "\t" + type + "\t" + (type.isReversed() || type instanceof CompositeType ? "-" : type.asCQL3Type().toString()));
        }
    }
}
