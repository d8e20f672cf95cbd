class Strassen:
    def run(self, a, b):
        self.m1 = (a[0, 0] + a[1, 1]) * (b[0, 0] + b[1, 1])
        self.m2 = (a[1, 0] + a[1, 1]) * (b[0, 0])
        self.m3 = (a[0, 0]) * (b[0, 1] - b[1, 1])
        self.m4 = (a[1, 1]) * (b[1, 0] - b[0, 0])
        self.m5 = (a[0, 0] + a[0, 1]) * (b[1, 1])
        self.m6 = (a[1, 0] - a[0, 0]) * (b[0, 0] + b[0, 1])
        self.m7 = (a[0, 1] - a[1, 1]) * (b[1, 0] + b[1, 1])
        c[0, 0] = self.m1 + self.m4 - self.m5 + self.m7
        c[0, 1] = self.m3 + self.m5
        c[1, 0] = self.m2 + self.m4
        c[1, 1] = self.m1 - self.m2 + self.m3 + self.m6
